"""What a model is compiled for when it is loaded: its first requests find nothing left to compile."""

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import ASGITransport, AsyncClient
from PIL import Image

from engine import LayerError, Plan, RuntimeGraph
from engine.compiler.program.assembler import compile_plan
from service.app import create_app
from service.config.limits import Limits
from service.config.model_config import ModelConfig, ModelConfigError
from service.config.settings import Settings
from service.log_context import FIELDS
from service.repository.files import ModelFilesError
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.repository.warm_up import warm_up
from service.repository.warm_up_shapes import MAX_PROGRAMS, count_programs
from tests.engine.models import make_graph, write_model
from tests.service.models import MISMATCH, PAIR, VECTOR

LIMITS = Limits()
CONV = (
    "bias=True dilation=(1,1) groups=1 in_channels=3 kernel_size=(3,3) out_channels=8 padding=(1,1) "
    "padding_mode=zeros stride=(1,1) @bias=(8)f32 @weight=(8,3,3,3)f32"
)
DYNAMIC = f"""
pnnx.Input           in   0 1 0 #0=(?,3,?,?)f32
nn.Conv2d            conv 1 1 0 1 {CONV}
nn.AdaptiveAvgPool2d pool 1 1 1 2 output_size=(1,1)
torch.flatten        flat 1 1 2 3 end_dim=-1 start_dim=1 $input=2
pnnx.Output          out  1 0 3
"""
"""Averages eight filters over images of any size and number."""
SQUARE = f"""
pnnx.Input    in   0 1 0 #0=(?,3,?,?)f32
nn.Conv2d     conv 1 1 0 1 {CONV}
torch.flatten flat 1 1 1 2 end_dim=-1 start_dim=1 $input=1
nn.Linear     fc   1 1 2 3 bias=False in_features=512 out_features=2 @weight=(2,512)f32
pnnx.Output   out  1 0 3
"""
"""Declares any size, and takes eight by eight."""
LINEAR = """
pnnx.Input  in 0 1 0 #0=(?,?)f32
nn.Linear   fc 1 1 0 1 bias=False in_features=9 out_features=2 @weight=(2,9)f32
pnnx.Output out 1 0 1
"""
"""Declares any number of features, and takes nine."""
TWO = """
pnnx.Input      ids  0 1 0 #0=(?,?)f32
pnnx.Input      mask 0 1 1 #1=(?,?)f32
pnnx.Expression mul  2 1 0 1 2 expr=mul(@0,@1)
pnnx.Output     out  1 0 2
"""
WEIGHTS = {
    "conv.bias": np.ones(8, np.float32),
    "conv.weight": np.ones((8, 3, 3, 3), np.float32),
}
FEATURES = {SQUARE: 512, LINEAR: 9}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that were compiled."""
    plans: list[Plan] = []

    def note(plan: Plan, *rest: Any) -> Any:
        plans.append(plan)
        return compile_plan(plan, *rest)

    monkeypatch.setattr("engine.compiler.program.programs.compile_plan", note)
    return plans


def add(root: Path, lines: str, config: str = "") -> Path:
    folder = root / "m"
    folder.mkdir()
    weights = WEIGHTS if "nn.Conv2d" in lines else {}
    if lines in FEATURES:
        weights = weights | {"fc.weight": np.ones((2, FEATURES[lines]), np.float32)}
    write_model(folder, lines, weights)
    (folder / "model.toml").write_text(config)
    return folder


def load(root: Path, lines: str, config: str = "", **options: Any) -> LoadedModel:
    return load_version("m", add(root, lines, config), LoadOptions(limits=LIMITS, **options))


def shapes_of(model: LoadedModel) -> list[list[Sequence[int]]]:
    return [[list(shape) for shape in item.shapes] for item in model.warmed_up]


def images(*shape: int) -> list[np.ndarray]:
    return [np.zeros(shape, np.float32)]


def test_declared_shapes_are_compiled_and_run_on_zeros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[np.ndarray]] = []
    forward = RuntimeGraph.forward

    def note(graph: RuntimeGraph, inputs: list[np.ndarray]) -> list[np.ndarray]:
        runs.append(inputs)
        return forward(graph, inputs)

    monkeypatch.setattr(RuntimeGraph, "forward", note)
    folder = add(tmp_path, VECTOR)
    assert load_version("m", folder, LoadOptions(warm_up=False)).warmed_up == ()
    assert runs == []
    model = load_version("m", folder, LoadOptions())
    assert [[array.tolist() for array in inputs] for inputs in runs] == [[[[0, 0, 0]]]]
    assert shapes_of(model) == [[[1, 3]]]


@pytest.mark.parametrize("config", ["[image]\nsize = [24, 40]", "[warm_up]\nshapes = [[1, 3, 24, 40]]"])
def test_sizes_that_the_file_leaves_open_are_compiled(
    tmp_path: Path, compiled: list[Plan], config: str
) -> None:
    model = load(tmp_path, DYNAMIC, config)
    assert shapes_of(model) == [[[1, 3, 24, 40]]], "and no guess at dynamic sizes"
    assert [item.is_compiled for item in model.warmed_up] == [True]
    before = len(compiled)
    model.graph.forward(images(1, 3, 24, 40))
    assert len(compiled) == before == 1
    model.graph.forward(images(1, 3, 25, 40))
    assert len(compiled) == 2, "another size is compiled when it comes"


@pytest.mark.anyio
async def test_first_request_compiles_nothing(tmp_path: Path, compiled: list[Plan]) -> None:
    add(tmp_path, DYNAMIC, "[image]\nsize = [24, 40]\n[warm_up]\nshapes = [[2, 3, 16, 16]]")
    app = create_app(Settings(models=tmp_path, workers=1, max_batch_size=4))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        before = len(compiled)
        assert before > 0
        picture = io.BytesIO()
        Image.new("RGB", (30, 30)).save(picture, "PNG")
        headers = {"Content-Type": "image/png"}
        response = await client.post("/infer", content=picture.getvalue(), headers=headers)
        assert response.status_code == 200, response.text
        tensor = {"inputs": [{"shape": [2, 3, 16, 16], "dtype": "float32", "data": [0] * 1536}]}
        assert (await client.post("/infer", json=tensor)).status_code == 200
        model = app.state.services.repository.find("m")
        for rows in (1, 2, 4):
            for size in ((24, 40), (16, 16)):
                model.graph.forward(images(rows, 3, *size))
        assert len(compiled) == before


def test_every_size_of_batch_is_compiled_for_every_shape(tmp_path: Path, compiled: list[Plan]) -> None:
    config = """
    [image]
    size = [8, 8]
    [batching]
    max_batch_size = 6
    preferred_batch_sizes = [3]
    [warm_up]
    shapes = [[1, 3, 8, 12]]
    """
    model = load(tmp_path, DYNAMIC, config)
    assert model.batching.max_batch_size == 6
    assert sorted(shapes_of(model)) == sorted(
        [[rows, 3, 8, width]] for rows in (1, 2, 3, 4, 6) for width in (8, 12)
    )
    before = len(compiled)
    for item in model.warmed_up:
        model.graph.forward(images(*item.shapes[0]))
    assert len(compiled) == before


def test_batches_are_proved_on_the_shapes_that_requests_are_to_have(tmp_path: Path) -> None:
    model = load(tmp_path, LINEAR, "[warm_up]\nshapes = [[1, 9]]\n[batching]\nmax_batch_size = 2")
    assert model.batching.refusal is None
    assert shapes_of(model) == [[[1, 9]], [[2, 9]]]


def test_warm_up_compiles_no_batches_where_none_are_formed(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(?,3)f32\nnn.Softmax soft 1 1 0 1 dim=0\npnnx.Output out 1 0 1"
    model = load(tmp_path, lines, "[batching]\nmax_batch_size = 8")
    assert model.batching.refusal is not None
    assert shapes_of(model) == [[[1, 3]]]


def test_shapes_do_not_drive_one_another_out(tmp_path: Path, compiled: list[Plan]) -> None:
    shapes = [[1, 3, 8, width] for width in range(4, 24)]
    model = load(tmp_path, DYNAMIC, f"[warm_up]\nshapes = {shapes}")
    assert len(model.warmed_up) == len(compiled) == 20
    for shape in shapes:
        model.graph.forward(images(*shape))
    assert len(compiled) == 20
    for width in range(100, 110):
        model.graph.forward(images(1, 3, 8, width))
    for shape in shapes:
        model.graph.forward(images(*shape))
    assert len(compiled) == 30, "nor do a few shapes that requests bring"


def test_shapes_of_several_inputs(tmp_path: Path) -> None:
    config = "[warm_up]\nshapes = [[[1, 5], [1, 5]], [[2, 7], [2, 1]]]"
    assert shapes_of(load(tmp_path, TWO, config)) == [[[1, 5], [1, 5]], [[2, 7], [2, 1]]]


def test_numpy_compiles_nothing(tmp_path: Path, compiled: list[Plan]) -> None:
    model = load(tmp_path, DYNAMIC, "[image]\nsize = [8, 8]", backend="numpy")
    assert [item.is_compiled for item in model.warmed_up] == [False]
    assert not compiled


def test_file_without_shapes_is_warmed_up_where_they_are_given(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    assert load(tmp_path, lines).warmed_up == ()
    other = tmp_path / "other"
    other.mkdir()
    assert shapes_of(load(other, lines, "[image]\nsize = [4, 5]")) == [[[1, 3, 4, 5]]]


@pytest.mark.parametrize(
    ("lines", "shapes", "place", "problem"),
    [
        (VECTOR, "[[1, 3], [1]]", "[1]", "[1] has 1 dimensions; expected 2, like input 0: (?,3)f32"),
        (
            PAIR,
            "[[2]]",
            "[0]",
            "1 shape; expected one for each input: a: (2)f32, b: (2)f32",
        ),
        (VECTOR, "[[[1, 3], [1, 3]]]", "[0]", "2 shapes; expected one for each input: 0: (?,3)f32"),
        (
            VECTOR,
            "[[99999999, 3]]",
            "[0]",
            "[99999999, 3] has 299999997 elements; maximum is 16777216",
        ),
        (
            SQUARE,
            "[[1, 3, 8, 8], [1, 3, 8, 9]]",
            "[1]",
            "the model does not run on [1, 3, 8, 9]: nn.Linear fc",
        ),
    ],
)
def test_shapes_that_do_not_fit(tmp_path: Path, lines: str, shapes: str, place: str, problem: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        load(tmp_path, lines, f"[warm_up]\nshapes = {shapes}")
    assert str(caught.value).startswith(f"model.toml, warm_up.shapes{place}: {problem}")


def test_size_of_images_that_the_model_does_not_take(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"image.size: the model does not run on \[1, 3, 9, 9\]"):
        load(tmp_path, SQUARE, "[image]\nsize = [9, 9]")


def test_more_programs_than_may_be_kept_are_refused(tmp_path: Path) -> None:
    config = ModelConfig.model_validate({"warm_up": {"shapes": [[1, n] for n in range(1, MAX_PROGRAMS)]}})
    problem = f"warm_up.shapes: 129 shapes at 1 batch sizes are 129 programs; expected at most {MAX_PROGRAMS}"
    with pytest.raises(ModelConfigError, match=problem):
        count_programs(config, 1)
    batching = {"max_batch_size": 4096, "preferred_batch_sizes": [*range(1, 100)]}
    with pytest.raises(ModelConfigError, match="preferred_batch_sizes: 2 shapes at"):
        count_programs(ModelConfig.model_validate({"batching": batching}), 1)
    assert count_programs(ModelConfig(), 4096) <= MAX_PROGRAMS


def test_batch_that_does_not_run_is_reported_and_the_model_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shapes = [[1, 3, 8, 8], [1, 3, 8, 9], [1, 3, 512, 512]]
    config = f"[batching]\nmax_batch_size = 4\n[warm_up]\nshapes = {shapes}"
    model = load(tmp_path, DYNAMIC, config, max_run_bytes=40 << 20)
    large = [shape for (shape,) in shapes_of(model) if shape[2] == 512]
    assert large == [[1, 3, 512, 512], [2, 3, 512, 512]]
    (record,) = [record for record in caplog.records if record.message == "batch does not run"]
    assert record.levelno == logging.WARNING
    assert getattr(record, FIELDS)["shapes"] == "[4, 3, 512, 512]"


def test_no_wrong_guess_is_held_against_a_model(tmp_path: Path) -> None:
    window = (
        "ceil_mode=False dilation=(1,1) kernel_size=(4,4) padding=(0,0) return_indices=False stride=(4,4)"
    )
    lines = f"""
    pnnx.Input   in   0 1 0 #0=(1,1,?,?)f32
    nn.MaxPool2d pool 1 1 0 1 {window}
    pnnx.Output  out  1 0 1
    """
    graph = make_graph(tmp_path, lines)
    with pytest.raises(LayerError):
        graph.forward([np.zeros((1, 1, 1, 1), np.float32)])
    assert warm_up(graph, ModelConfig(), LIMITS) == ()


def test_model_that_does_not_run_as_it_declares_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LayerError, match="sum"):
        warm_up(make_graph(tmp_path, MISMATCH), ModelConfig(), LIMITS)


def test_warm_up_allocates_no_more_than_a_request_may(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(1000000,1000000)f32\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    with pytest.raises(ModelFilesError, match="1000000000000 elements; maximum is 16777216"):
        warm_up(make_graph(tmp_path, lines), ModelConfig(), LIMITS)
