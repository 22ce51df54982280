"""How quantized tensors travel through a graph, and layers that know nothing of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import LayerError, ParameterError
from engine.binding.requantization import first_of, to_real
from engine.dtypes import Array
from engine.run.trace import TraceLevel, trace_operand
from engine.spec import QuantizedSpec, QuantizedTensor, TensorSpec, arrays_in, spec_of, tensor_specs
from tests.engine.models import make_graph

TENSOR = QuantizedTensor(np.array([[0, 10, 20], [30, 40, 255]], np.uint8), 0.5, 10)
REAL: Array = np.array([[-5, 0, 5], [10, 15, 122.5]], np.float32)
HEAD = """
    pnnx.Input input 0 1 x
    nn.quantized.Quantize quantize 1 1 x q scale=5.0e-01 zero_point=10 dtype=torch.qint8 #q=(2,3)u8
"""
WEIGHT: dict[str, Array] = {
    "op.bias": np.zeros(2, np.float32),
    "op.weight": np.ones((2, 3), np.int8),
    "op.weight.q_per_channel_scales": np.ones(2),
}
LINEAR = "@weight=(2,3)i8 @bias=(2)f32 @weight.q_per_channel_scales=(2)f64"


def through(folder: Path, lines: str, **weights: Array) -> Any:
    """Run operators that turn the quantized REAL, `q`, into `r`."""
    graph = make_graph(folder, f"{HEAD}{lines}\n    pnnx.Output output 1 0 r", weights, backend="numpy")
    return graph.run([REAL], trace=TraceLevel.STATISTICS, capture=["q", "r"])


def test_its_spec_shows_shape_and_integers() -> None:
    spec = spec_of(TENSOR)
    assert spec == QuantizedSpec((2, 3), np.dtype(np.uint8)) != TensorSpec((2, 3), np.dtype(np.uint8))
    assert str(spec) == "quantized (2,3)u8"
    assert QuantizedSpec((2, 3), np.dtype(np.uint8)).with_shape([6]) == QuantizedSpec(
        (6,), np.dtype(np.uint8)
    )
    assert [found.nbytes for found in tensor_specs((spec, None))] == [6]
    assert [array.dtype for array in arrays_in((TENSOR, 1))] == [np.uint8]


def test_its_real_numbers_are_found_in_tuples() -> None:
    assert first_of(QuantizedTensor, [1, (2, [TENSOR])]) is TENSOR
    assert first_of(QuantizedTensor, [1, (2, [np.ones(2)])]) is None
    ((real, one),) = to_real(((TENSOR, 1),))
    np.testing.assert_array_equal(real, REAL)
    assert one == 1


def test_it_is_traced_with_its_integers_and_its_real_numbers() -> None:
    traced = trace_operand("q", TENSOR, "numpy")
    assert (traced.shape, traced.dtype) == ((2, 3), "u8")
    assert traced.statistics is not None
    assert (traced.statistics.minimum, traced.statistics.maximum) == (-5, 122.5)


def test_outputs_and_captured_operands_are_real(tmp_path: Path) -> None:
    result = through(tmp_path, "torch.flatten op 1 1 q r start_dim=0 end_dim=-1")
    np.testing.assert_array_equal(result.outputs[0], np.ravel(REAL))
    np.testing.assert_array_equal(result.captured["q"], REAL)
    assert [operand.dtype for operand in result.trace.layers[2].outputs] == ["u8"]
    assert result.trace.layers[2].bytes_moved == 12


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("nn.ReLU op 1 1 q r", np.maximum(REAL, 0)),
        ("torch.transpose op 1 1 q r dim0=0 dim1=1", np.transpose(REAL)),
        ("torch.cat op 2 1 q q r dim=1", np.concatenate([REAL, REAL], 1)),
        ("F.hardtanh op 1 1 q r min_val=-0.3 max_val=3.2", np.clip(REAL, -0.5, 3)),
        ("F.sigmoid op 1 1 q r", np.minimum(np.rint(256 / (1 + np.exp(-REAL))), 255) / 256),
        ("F.tanh op 1 1 q r", np.clip(np.rint(128 * np.tanh(REAL)), -128, 127) / 128),
    ],
)
def test_other_layers_run_on_real_numbers(tmp_path: Path, line: str, wanted: Array) -> None:
    (output,) = through(tmp_path, line).outputs
    np.testing.assert_allclose(output, wanted, rtol=1e-6)


def test_what_is_no_real_number_is_not_quantized_again(tmp_path: Path) -> None:
    (output,) = through(tmp_path, "torch.argmax op 1 1 q r dim=1 keepdim=False").outputs
    assert output.dtype == np.int64
    np.testing.assert_array_equal(output, [2, 2])


def test_shapes_are_inferred(tmp_path: Path) -> None:
    lines = f"{HEAD}nn.ReLU op 1 1 q p\n nn.quantized.DeQuantize back 1 1 p r\n pnnx.Output output 1 0 r"
    plan = make_graph(tmp_path, lines, backend="numpy").plan([TensorSpec((2, 3), np.dtype(np.float32))])
    assert plan.specs["p"] == QuantizedSpec((2, 3), np.dtype(np.uint8))
    assert plan.specs["r"] == TensorSpec((2, 3), np.dtype(np.float32))


def test_multiply_adds_are_counted(tmp_path: Path) -> None:
    lines = f"{HEAD}nn.quantized.Linear op 1 1 q r scale=1.0 zero_point=0 {LINEAR}\npnnx.Output output 1 0 r"
    plan = make_graph(tmp_path, lines, WEIGHT).plan([TensorSpec((2, 3), np.dtype(np.float32))])
    assert plan.multiply_adds == 12


def test_many_products_are_summed_exactly(tmp_path: Path) -> None:
    rng, count = np.random.default_rng(0), 3000
    weight = rng.integers(100, 128, (1, count)).astype(np.int8)
    numbers = rng.integers(200, 256, (8, count))
    lines = f"""
        pnnx.Input input 0 1 x
        nn.quantized.Quantize quantize 1 1 x q scale=1.0 zero_point=0 dtype=torch.quint8
        nn.quantized.Linear op 1 1 q r @weight=(1,{count})i8 @weight.q_per_channel_scales=(1)f64
        pnnx.Output output 1 0 r
    """
    attributes: dict[str, Array] = {"op.weight": weight, "op.weight.q_per_channel_scales": np.ones(1)}
    graph = make_graph(tmp_path, lines, attributes)
    (output,) = graph.forward([numbers.astype(np.float32)])
    np.testing.assert_array_equal(output, (numbers @ weight.T.astype(np.int64)).astype(np.float32))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("nn.quantized.Linear op 1 1 x r scale=1.0 zero_point=0", "quantized tensor of 8-bit integers"),
        ("nn.quantized.Linear op 1 1 q r scale=0.0 zero_point=0", "'scale': got 0.0"),
        ("nn.quantized.Linear op 1 1 q r scale=1.0 zero_point=256", "'zero_point': got 256"),
    ],
)
def test_linear_names_what_is_wrong(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(LayerError, match=words) as error:
        through(tmp_path, f"{lines} {LINEAR}", **WEIGHT)
    assert "nn.quantized.Linear op" in str(error.value)


@pytest.mark.parametrize("line", ["nn.quantized.cat op 2 1 q x r", "nn.quantized.cat op 1 1 x r"])
def test_cat_refuses_real_numbers(tmp_path: Path, line: str) -> None:
    with pytest.raises(LayerError, match="is not quantized; expected a quantized tensor"):
        through(tmp_path, f"{line} dim=0 scale=1.0 zero_point=0")


@pytest.mark.parametrize(
    ("declared", "changed", "words"),
    [
        (
            "@weight=(2,3)i8 @bias=(2)f32",
            {"op.weight.q_per_channel_scales": None},
            "has no scale of the weight",
        ),
        (
            "@weight=(2,3)i8 @bias=(2)f32 @weight.q_per_channel_scales=(3)f64",
            {"op.weight.q_per_channel_scales": np.ones(3)},
            r"shape \(3,\)",
        ),
        (LINEAR, {"op.weight.q_per_channel_scales": np.array([1.0, 0.0])}, "above 0"),
        (
            "@weight=(2,3)f32 @bias=(2)f32 @weight.q_per_channel_scales=(2)f64",
            {"op.weight": np.ones((2, 3), np.float32)},
            "int8",
        ),
        (
            "@weight=(2,3)i8 @bias=(3)f32 @weight.q_per_channel_scales=(2)f64",
            {"op.bias": np.zeros(3, np.float32)},
            r"shape \(3,\)",
        ),
    ],
)
def test_weights_that_cannot_be_are_refused_at_build(
    tmp_path: Path, declared: str, changed: dict[str, Array | None], words: str
) -> None:
    weights = {name: array for name, array in (WEIGHT | changed).items() if array is not None}
    with pytest.raises(ParameterError, match=words):
        through(tmp_path, f"nn.quantized.Linear op 1 1 q r scale=1.0 zero_point=0 {declared}", **weights)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("scale=0.0 zero_point=0 dtype=torch.qint8", "'scale'"),
        ("scale=1.0 zero_point=-1 dtype=torch.quint8", "'zero_point'"),
        ("scale=1.0 zero_point=0 dtype=torch.int8", "'dtype'"),
    ],
)
def test_quantize_names_what_is_wrong(tmp_path: Path, params: str, words: str) -> None:
    lines = f"pnnx.Input i 0 1 x\n torch.quantize_per_tensor op 1 1 x r {params}\n pnnx.Output o 1 0 r"
    with pytest.raises(LayerError, match=words):
        make_graph(tmp_path, lines).forward([np.zeros(3, np.float32)])
