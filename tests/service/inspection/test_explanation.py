"""What explanations find, beside loops that say what they are to find, and on the models that ship."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Array, RunStoppedError, StopSignal
from service.codec import Decoded, decode
from service.config.limits import Limits
from service.errors import ServiceError
from service.inspection.explanation import explain
from service.inspection.explanation_schemas import Question
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from tests.engine.models import write_model
from tests.service.inspection.deletion import asked, relative_area
from tests.service.text.models import VECTORS, WORDS, tokenizer_json

MODELS = Path(__file__).parents[3] / "models"
RNG = np.random.default_rng(3)
WEIGHT = RNG.normal(size=(2, 64)).astype(np.float32)
KERNEL = RNG.normal(size=(3, 1, 1, 1)).astype(np.float32)
HEAD = RNG.normal(size=(2, 3)).astype(np.float32)
X = RNG.normal(size=(1, 1, 8, 8)).astype(np.float32)

FLAT = """
pnnx.Input    in   0 1 x #x=(?,1,8,8)f32
torch.flatten flat 1 1 x y end_dim=-1 start_dim=1 #x=(?,1,8,8)f32 #y=(?,64)f32
nn.Linear     head 1 1 y z bias=False in_features=64 out_features=2 @weight=(2,64)f32 #y=(?,64)f32 #z=(?,2)f32
pnnx.Output   out  1 0 z #z=(?,2)f32
"""
POOLED = """
pnnx.Input           in   0 1 x #x=(?,1,8,8)f32
nn.Conv2d            conv 1 1 x a bias=False dilation=(1,1) groups=1 in_channels=1 kernel_size=(1,1) out_channels=3 padding=(0,0) padding_mode=zeros stride=(1,1) @weight=(3,1,1,1)f32 #x=(?,1,8,8)f32 #a=(?,3,8,8)f32
nn.ReLU              relu 1 1 a b #a=(?,3,8,8)f32 #b=(?,3,8,8)f32
nn.AdaptiveAvgPool2d pool 1 1 b c output_size=(1,1) #b=(?,3,8,8)f32 #c=(?,3,1,1)f32
torch.flatten        flat 1 1 c y end_dim=-1 start_dim=1 #c=(?,3,1,1)f32 #y=(?,3)f32
nn.Linear            head 1 1 y z bias=False in_features=3 out_features=2 @weight=(2,3)f32 #y=(?,3)f32 #z=(?,2)f32
pnnx.Output          out  1 0 z #z=(?,2)f32
"""  # noqa: E501  # an operator is a line
TEXT = """
pnnx.Input   ids   0 1 i #i=(?,?)i64
nn.Embedding table 1 1 i e embedding_dim=5 num_embeddings=8 sparse=False @weight=(8,5)f32 #i=(?,?)i64 #e=(?,?,5)f32
torch.mean   mean  1 1 e z dim=(1) keepdim=False #e=(?,?,5)f32 #z=(?,5)f32
pnnx.Output  out   1 0 z #z=(?,5)f32
"""


def open_model(folder: Path, lines: str, weights: dict[str, Array], config: str) -> LoadedModel:
    write_model(folder, lines, weights)
    (folder / "model.toml").write_text(config)
    return load_version("model", folder, LoadOptions())


def tensor(x: Array = X) -> Decoded:
    return Decoded({"x": x})


@pytest.fixture
def flat(tmp_path: Path) -> LoadedModel:
    return open_model(
        tmp_path, FLAT, {"head.weight": WEIGHT}, 'task = "classification"\nlabels = ["a", "b"]\n'
    )


@pytest.fixture
def pooled(tmp_path: Path) -> LoadedModel:
    weights = {"conv.weight": KERNEL, "head.weight": HEAD}
    return open_model(tmp_path, POOLED, weights, 'task = "classification"\nlabels = ["a", "b"]\n')


@pytest.mark.parametrize("grid", [2, 4])
@pytest.mark.parametrize("target", ["a", "1"])
def test_occlusion_is_the_mean_fall_of_the_windows_that_hide_a_part(
    flat: LoadedModel, grid: int, target: str
) -> None:
    found = asked(flat, tensor(), grid=grid, target=target)
    weight = WEIGHT[found.target["index"]].reshape(8, 8)
    assert found.target["label"] == {"a": "a", "1": "b"}[target]
    side = 8 // (2 * grid)
    fall, times = np.zeros((2, 8, 8))
    for row, column in product(range(grid), range(grid)):
        top, left = (max(0, (2 * place - 1) * side) for place in (row, column))
        window = slice(top, (2 * row + 3) * side), slice(left, (2 * column + 3) * side)
        fall[window] += ((X[0, 0] - np.median(X)) * weight)[window].sum()
        times[window] += 1
    assert found.heatmap is not None
    np.testing.assert_allclose(found.heatmap, (fall / times)[::side, ::side], atol=1e-5)
    assert (found.method, found.runs, found.region) == ("occlusion", grid**2 + 1, [0, 0, 8, 8])


@pytest.mark.parametrize("layer", [None, "relu", "b"])
def test_score_cam_adds_channels_by_the_score_that_they_keep(pooled: LoadedModel, layer: str | None) -> None:
    found = asked(pooled, tensor(), method="score-cam", layer=layer)
    active = np.maximum(X[0, 0] * KERNEL[:, :, 0], 0)
    filling = np.median(X)

    def score(x: Array) -> float:
        return float(HEAD[found.target["index"]] @ np.maximum(x * KERNEL[:, 0], 0).mean((1, 2)))

    wanted = np.zeros((8, 8))
    for channel in active:
        mask = (channel - channel.min()) / np.ptp(channel)
        kept = score(filling + (X[0, 0] - filling) * mask) - score(np.full((8, 8), filling, np.float32))
        wanted += max(0.0, kept) * mask
    wanted = (wanted - wanted.min()) / (np.ptp(wanted) or 1)
    assert found.heatmap is not None
    np.testing.assert_allclose(found.heatmap, wanted, atol=1e-4)
    assert (found.layer, found.runs) == ("b", 5)


def test_fewer_maps_are_those_that_vary_most(pooled: LoadedModel) -> None:
    found = asked(pooled, tensor(), method="score-cam", maps=1)
    assert found.runs == 3


def test_words_matter_by_how_much_the_score_falls_without_them(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tokenizer_json())
    config = 'task = "text-classification"\n[text]\ntokenizer = "tokenizer.json"\n'
    model = open_model(tmp_path, TEXT, {"table.weight": VECTORS}, config)
    text = "red  cat, green"
    decoded = decode(text.encode(), "text/plain", model.graph.inputs, model.config, Limits())
    found = asked(model, decoded)

    def score(words: list[str]) -> float:
        ids = [WORDS.get(word, 1) for word in ("[CLS]", *words, "[SEP]")]
        return float(VECTORS[ids].mean(0)[found.target["index"]])

    whole = score(["red", "cat", ",", "green"])
    rest = (["cat", ",", "green"], ["red", "green"], ["red", "cat", ","])
    wanted = [whole - score(words) for words in rest]
    assert found.words is not None
    assert [text[word.start : word.end] for word in found.words] == ["red", "cat,", "green"]
    assert [word.importance for word in found.words] == pytest.approx(wanted, abs=1e-5)
    assert (found.method, found.runs, found.heatmap) == ("words", 4, None)


@pytest.mark.parametrize("method", ["occlusion", "score-cam"])
@pytest.mark.parametrize("name", ["digits", "digit-scenes"])
def test_the_score_falls_faster_without_what_matters_than_without_random_parts(
    name: str, method: Any
) -> None:
    model = load_version(name, MODELS / name, LoadOptions())
    files = sorted((MODELS / name / "samples").glob("*.png"))[: 1 if name == "digit-scenes" else 5]
    falls = [relative_area(model, file, method=method, grid=4, maps=24) for file in files]
    assert np.mean(falls) < 0.8, falls


@pytest.mark.parametrize(
    ("decoded", "question", "message"),
    [
        (Decoded({"x": np.repeat(X, 2, 0)}), {}, "the request has 2 items; send one at a time"),
        (tensor(), {"target": "c"}, "there are 0 predictions of 'c'"),
        (tensor(), {"target": "a", "place": 1}, "there are 1 predictions of 'a'; the one at place 1"),
        (tensor(), {"method": "words"}, "method: 'words' is for texts"),
        (tensor(), {"method": "score-cam", "layer": "head"}, "layer: 'head' is not a layer with channels"),
        (tensor(), {"method": "score-cam", "layer": "rel"}, "did you mean 'relu'"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    pooled: LoadedModel, decoded: Decoded, question: dict[str, Any], message: str
) -> None:
    with pytest.raises(ServiceError, match=message) as caught:
        asked(pooled, decoded, **question)
    assert caught.value.status == 422


def test_a_model_without_channels_is_refused(flat: LoadedModel) -> None:
    large = asked(flat, tensor(), method="score-cam", layer="in")
    assert large.layer == "x"  # the input is a layer of one channel


def test_it_stops_when_asked_to(flat: LoadedModel) -> None:
    stop = StopSignal()
    stop.stop("the client left")
    with pytest.raises(RunStoppedError, match="the client left"):
        explain(flat, tensor(), Question(), Limits(), stop)
