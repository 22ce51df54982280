import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import Activation, InputError, RuntimeGraph, read_sidecar, sidecar_path
from engine.backend import choose_backend, describe_processor
from engine.calibration import QuantizeOptions, quantize_model
from engine.dtypes import Array
from service.commands.dispatch import run_command
from tests.engine.models import write_model
from tests.service.terminal import CLEAR, Terminal

LINES = """
pnnx.Input in 0 1 x #x=(1,3,8,8)f32
nn.Conv2d one 1 1 x a in_channels=3 out_channels=8 kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) \
groups=1 bias=False padding_mode=zeros @weight=(8,3,3,3)f32 #x=(1,3,8,8)f32 #a=(1,8,8,8)f32
nn.ReLU relu 1 1 a b #a=(1,8,8,8)f32 #b=(1,8,8,8)f32
nn.MaxPool2d pool 1 1 b c kernel_size=(2,2) stride=(2,2) padding=(0,0) dilation=(1,1) return_indices=False \
ceil_mode=False #b=(1,8,8,8)f32 #c=(1,8,4,4)f32
nn.Conv2d two 1 1 c d in_channels=8 out_channels=6 kernel_size=(1,1) stride=(1,1) padding=(0,0) dilation=(1,1) \
groups=1 bias=False padding_mode=zeros @weight=(6,8,1,1)f32 #c=(1,8,4,4)f32 #d=(1,6,4,4)f32
torch.flatten flatten 1 1 d e start_dim=1 end_dim=-1 $input=d #d=(1,6,4,4)f32 #e=(1,96)f32
nn.Linear fc 1 1 e f in_features=96 out_features=5 bias=False @weight=(5,96)f32 #e=(1,96)f32 #f=(1,5)f32
pnnx.Output out 1 0 f #f=(1,5)f32
"""


def main(arguments: Sequence[str]) -> int:
    return run_command(["quantize", *arguments])


@pytest.fixture
def param(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)

    def weight(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    weights = {"one.weight": weight(8, 3, 3, 3), "two.weight": weight(6, 8, 1, 1), "fc.weight": weight(5, 96)}
    return write_model(tmp_path, LINES, weights)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "examples.npz"
    np.savez(path, in_0=np.random.default_rng(1).standard_normal((12, 3, 8, 8)).astype(np.float32))
    return path


def quantized(param: Path) -> RuntimeGraph:
    graph = RuntimeGraph(param, quantization=read_sidecar(param, param.with_suffix(".bin")))
    graph.build()
    return graph


@pytest.mark.parametrize("method", ["mse", "minmax", "percentile"])
def test_scales_are_written_and_each_layer_is_reported(
    param: Path, data: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(param), "--data", str(data), "--method", method]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[1:4]] == [
        ["one", "nn.Conv2d", "int8", "static"],
        ["two", "nn.Conv2d", "int8", "static"],
        ["fc", "nn.Linear", "int8", "static"],
    ]
    assert lines[-1] == f"written {sidecar_path(param)}"
    found = read_sidecar(param, param.with_suffix(".bin"))
    assert found.calibration is not None
    assert (found.calibration.data, found.calibration.examples, found.calibration.method) == (
        "examples.npz",
        12,
        method,
    )
    plain = RuntimeGraph(param)
    plain.build()
    x = np.load(data)["in_0"][:1]
    (ours,), (wanted,) = quantized(param).forward([x]), plain.forward([x])
    assert 0 < np.abs(ours - wanted).max() < 0.05 * np.abs(wanted).max()


def test_the_report_is_json_as_well(param: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(param), "--data", str(data), "--keep", "two", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["written"] == str(sidecar_path(param))
    assert document["zeros"] == []
    assert document["outputs"]["agreement"] >= 0
    assert {"one", "fc"} <= document["layers"].keys()
    assert document["layers"]["one"]["f32_us"] > 0


def test_integers_flow_through_pooling_and_flattening(param: Path, data: Path) -> None:
    assert main([str(param), "--data", str(data)]) == 0
    tensors = read_sidecar(param, param.with_suffix(".bin")).tensors
    assert list(tensors) == ["x", "c", "b", "e", "d"]
    assert tensors["b"] == tensors["c"] != tensors["x"]
    assert tensors["d"] == tensors["e"]


def test_layers_stay_in_float32_where_the_caller_says_so(
    param: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(param), "--data", str(data), "--keep", "two"]) == 0
    assert dict(read_sidecar(param, param.with_suffix(".bin")).layers) == {
        "one": Activation.STATIC,
        "fc": Activation.STATIC,
    }
    assert main([str(param), "--data", str(data), "--keep", "three"]) == 1
    assert "--keep: 'three': no layer that can be in int8; those are " in capsys.readouterr().err


def test_the_most_harmful_layers_stay_in_float32_until_the_outputs_are_good_enough(
    param: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(param), "--data", str(data), "--tolerance", "0.5"]) == 0
    assert len(read_sidecar(param, param.with_suffix(".bin")).layers) == 3
    assert main([str(param), "--data", str(data), "--tolerance", "0.007"]) == 0
    found = read_sidecar(param, param.with_suffix(".bin"))
    layers = found.layers
    assert 0 < len(layers) < 3
    assert found.figures is not None
    assert {name for name, layer in found.figures.layers.items() if layer.quantized} == layers.keys()
    kept = {"one", "two", "fc"} - layers.keys()
    out = capsys.readouterr().out
    assert all(f"kept in f32: {name}, which costs" in out for name in kept)
    assert main([str(param), "--data", str(data), "--tolerance", "0"]) == 0
    assert not read_sidecar(param, param.with_suffix(".bin")).layers


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "holds 0 arrays; expected 1"),
        ({"in_0": np.float32(1)}, "expected a leading axis over examples"),
        ({"in_0": np.zeros((0, 3, 8, 8))}, "holds no examples"),
        ({"in_0": np.zeros((2, 4, 8, 8))}, "channels"),
        ({"in_0": np.zeros((2, 3, 8, 8)), "in_1": np.zeros((2, 3, 8, 8))}, "holds 2 arrays; expected 1"),
        ({"in_0": np.array(["a", "b"])}, "'in_0', example 0: is <U1; expected numbers of f32"),
        ({"in_0": np.zeros((2, 3, 8, 8), np.complex64)}, "is complex64; expected numbers of f32"),
        ({"in_0": np.full((2, 3, 8, 8), 1e300)}, "'in_0', example 0: holds numbers that f32 cannot"),
    ],
)
def test_examples_that_do_not_fit_are_named(
    param: Path, tmp_path: Path, arrays: dict[str, Array], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "other.npz", **arrays)  # type: ignore[arg-type]
    assert main([str(param), "--data", str(tmp_path / "other.npz")]) == 1
    assert message in capsys.readouterr().err
    assert not sidecar_path(param).exists()


TWO_INPUTS = """
pnnx.Input first 0 1 y #y=(1,5)i64
pnnx.Input second 0 1 x #x=(1,5,16)f32
nn.Embedding table 1 1 y e embedding_dim=16 num_embeddings=9 padding_idx=None sparse=False @weight=(9,16)f32
pnnx.Expression sum 2 1 e x s expr=add(@0,@1)
nn.Linear fc 1 1 s f in_features=16 out_features=4 bias=False @weight=(4,16)f32
pnnx.Output out 1 0 f
"""


@pytest.fixture
def two_inputs(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    weights = {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in {"table.weight": (9, 16), "fc.weight": (4, 16)}.items()
    }
    return write_model(tmp_path, TWO_INPUTS, weights)


@pytest.mark.parametrize("names", ["in_0 in_1", "first second", "y x", "arr_0 arr_1"])
def test_arrays_belong_to_inputs_by_name_or_by_number(two_inputs: Path, tmp_path: Path, names: str) -> None:
    """The operands' names are in another order than their inputs."""
    ids, x = names.split()
    numbers = np.random.default_rng(1).standard_normal((3, 5, 16)).astype(np.float32)
    np.savez(tmp_path / "x.npz", **{x: numbers, ids: np.full((3, 5), 7)})  # type: ignore[arg-type]
    assert main([str(two_inputs), "--data", str(tmp_path / "x.npz")]) == 0


def test_a_name_that_two_inputs_have_is_neither_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = TWO_INPUTS.replace("Input first 0 1 y", "Input first 0 1 second").replace(
        "1 1 y e", "1 1 second e"
    )
    weights = {"table.weight": np.zeros((9, 16), np.float32), "fc.weight": np.zeros((4, 16), np.float32)}
    param = write_model(tmp_path, lines.replace("#y=", "#second="), weights)
    np.savez(tmp_path / "x.npz", second=np.zeros((3, 5)), other=np.zeros((3, 5, 16)))
    assert main([str(param), "--data", str(tmp_path / "x.npz")]) == 1
    assert "its arrays are 'second', 'other'; expected in_0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "ids", "message"),
    [
        (
            "in_0 in_10",
            7,
            "its arrays are 'in_0', 'in_10'; expected in_0, in_1 …, or the inputs 'first', 'second'",
        ),
        ("ids x", 7, "its arrays are 'ids', 'x'; expected in_0"),
        ("in_0 in_1", 7.5, "'in_0', example 0: holds numbers that i64 cannot; expected what the input takes"),
    ],
)
def test_no_array_is_taken_for_an_input_that_it_may_not_be(
    two_inputs: Path,
    tmp_path: Path,
    names: str,
    ids: float,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = names.split()
    arrays = {first: np.full((3, 5), ids), second: np.zeros((3, 5, 16), np.float32)}
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    assert main([str(two_inputs), "--data", str(tmp_path / "x.npz")]) == 1
    assert message in capsys.readouterr().err
    assert not sidecar_path(two_inputs).exists()


def test_examples_that_are_partly_not_finite_are_warned_of(
    param: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(1).standard_normal((4, 3, 8, 8)).astype(np.float32)
    x[1, 0, 2, 3], x[2, 1, 1, 1] = np.nan, np.inf
    np.savez(tmp_path / "x.npz", in_0=x)
    assert main([str(param), "--data", str(tmp_path / "x.npz"), "--agreement", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["not_finite"]["x"] == 2
    assert main([str(param), "--data", str(tmp_path / "x.npz")]) == 0
    assert "warning: operand 'x' holds infinities or NaN in 2 of 4 examples" in capsys.readouterr().err


def test_files_that_change_meanwhile_get_no_scales(param: Path, data: Path) -> None:
    """Scales of the weights before are none of those after."""

    def step(text: str) -> None:
        if text == "choosing layers":
            param.write_text(param.read_text() + "\n")

    with pytest.raises(InputError, match="was changed meanwhile; nothing is written"):
        quantize_model(QuantizeOptions(param, param.with_suffix(".bin"), data), step)
    assert not sidecar_path(param).exists()


def test_a_terminal_shows_what_is_measured(
    param: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main([str(param), "--data", str(data)]) == 0
    shown = terminal.getvalue().split(CLEAR)
    assert shown[1:4] == ["reading the model", *(f"measuring ranges, example {n} of 12" for n in (1, 2))]
    assert {"choosing scales", "measuring layer 2 of 3 in int8, two", "timing runs in each precision"} <= {
        *shown
    }
    assert shown[-1] == ""
    assert CLEAR not in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_layer_whose_weights_are_an_operand_as_well_stays_in_float32(tmp_path: Path, backend: str) -> None:
    """So the exporter writes weights that modules share."""
    lines = """
    pnnx.Input in 0 1 x #x=(3,4)f32
    pnnx.Attribute shared 0 1 w @data=(4,4)f32 #w=(4,4)f32
    nn.Linear one 1 1 x y bias=False in_features=4 out_features=4 @weight=(4,4)f32 #x=(3,4)f32 #y=(3,4)f32
    nn.Linear two 2 1 w y z bias=False in_features=4 out_features=4 @weight=(4,4)f32 #w=(4,4)f32 #y=(3,4)f32 \
#z=(3,4)f32
    pnnx.Output out 1 0 z
    """.replace("\\\n", "")
    random = np.random.default_rng(0)
    weights = dict.fromkeys(("shared.data", "one.weight", "two.weight"), random.random((4, 4), np.float32))
    param, data = write_model(tmp_path, lines, weights), tmp_path / "shared.npz"
    x = random.random((6, 3, 4), np.float32)
    np.savez(data, in_0=x)
    assert main([str(param), "--data", str(data)]) == 0
    quantization = read_sidecar(param, param.with_suffix(".bin"))
    assert dict(quantization.layers) == {"one": Activation.STATIC}
    graph = RuntimeGraph(param, backend=backend, precision="int8")
    graph.build()
    wanted = x[0] @ weights["one.weight"].T @ weights["two.weight"].T
    np.testing.assert_allclose(graph.forward([x[0]])[0], wanted, atol=0.05)


def test_models_without_such_layers_and_folders_of_pictures_are_refused(
    tmp_path: Path, param: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"is a folder; expected an \.npz"):
        quantize_model(QuantizeOptions(param, param.with_suffix(".bin"), tmp_path), lambda _: None)
    other = tmp_path / "other"
    other.mkdir()
    lines = """
    pnnx.Input in 0 1 x #x=(1,3,8,8)f32
    nn.ReLU relu 1 1 x y
    pnnx.Output out 1 0 y
    """
    assert main([str(write_model(other, lines)), "--data", str(data)]) == 1
    assert "has no layers for int8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--agreement", "2"], ["--tolerance", "x"], ["--percentile", "1"], ["--measured", "0"], []]
)
def test_wrong_arguments_end_with_a_usage_error(param: Path, arguments: list[str]) -> None:
    assert main([str(param), *(["--data", "x", *arguments] if arguments else [])]) == 2


def test_times_are_those_of_each_precision(
    param: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(param), "--data", str(data)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[3:8] == ["ratio", "cosine", "f32", "bf16", "int8"]
    (row,) = [row.split() for row in rows if row.startswith("two ")]
    assert row.count("ms") == 3
    figures = read_sidecar(param, param.with_suffix(".bin")).figures
    assert figures is not None
    assert figures.runs is not None
    runs = figures.runs
    assert runs.processor == describe_processor(choose_backend(), 1)
    assert min(runs.f32_us, runs.bf16_us, runs.int8_us) > 0
    assert any(line.startswith("a run: f32 ") and line.endswith(runs.processor) for line in rows)


def test_a_tensor_that_is_0_in_all_examples_is_warned_of(
    param: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "examples.npz"
    np.savez(path, in_0=np.zeros((2, 3, 8, 8), np.float32))
    assert main([str(param), "--data", str(path)]) == 0
    assert "warning: operand 'x' is 0 in all examples" in capsys.readouterr().err
    assert any("operand 'x' was 0 in all examples" in warning for warning in quantized(param).warnings)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "operand 'x' has no finite number in any of them"),
        (3e38, "operand 'x' has numbers that are too large"),
    ],
)
def test_examples_that_give_no_scale_are_refused(
    param: Path, tmp_path: Path, value: float, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "examples.npz"
    np.savez(path, in_0=np.full((2, 3, 8, 8), value, np.float32))
    assert main([str(param), "--data", str(path)]) == 1
    assert message in capsys.readouterr().err
    assert not sidecar_path(param).exists()


def test_a_narrow_tensor_beside_a_wide_one_keeps_its_own_scale(tmp_path: Path) -> None:
    """Its integers are requantized where the two are concatenated; what else reads it loses nothing."""
    conv = (
        "kernel_size=(1,1) stride=(1,1) padding=(0,0) dilation=(1,1) groups=1 bias=False padding_mode=zeros"
    )
    lines = f"""
    pnnx.Input in 0 1 x #x=(1,3,8,8)f32
    nn.Conv2d narrow 1 1 x a {conv} in_channels=3 out_channels=8 @weight=(8,3,1,1)f32
    nn.Conv2d wide 1 1 x b {conv} in_channels=3 out_channels=8 @weight=(8,3,1,1)f32
    torch.cat cat 2 1 a b c dim=1
    nn.Conv2d all 1 1 c y {conv} in_channels=16 out_channels=4 @weight=(4,16,1,1)f32
    nn.Conv2d one 1 1 a z {conv} in_channels=8 out_channels=4 @weight=(4,8,1,1)f32
    pnnx.Output out 1 0 y
    pnnx.Output out2 1 0 z
    """
    random = np.random.default_rng(0)
    weights = {
        f"{name}.weight": (size * random.standard_normal((filters, channels, 1, 1))).astype(np.float32)
        for name, filters, channels, size in [
            ("narrow", 8, 3, 0.01), ("wide", 8, 3, 10), ("all", 4, 16, 1), ("one", 4, 8, 1)
        ]
    }  # fmt: skip
    param = write_model(tmp_path, lines, weights)
    examples = tmp_path / "examples.npz"
    np.savez(examples, in_0=random.standard_normal((12, 3, 8, 8)).astype(np.float32))
    assert main([str(param), "--data", str(examples), "--method", "minmax"]) == 0
    tensors = read_sidecar(param, param.with_suffix(".bin")).tensors
    assert tensors["b"] == tensors["c"]
    assert tensors["a"].scale < tensors["b"].scale / 100
    plain = RuntimeGraph(param)
    plain.build()
    x = np.load(examples)["in_0"][:1]
    for ours, wanted in zip(quantized(param).forward([x]), plain.forward([x]), strict=True):
        assert np.abs(ours - wanted).max() < 0.03 * np.abs(wanted).max()
