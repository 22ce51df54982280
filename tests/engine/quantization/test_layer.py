"""Layers in int8 against sums of Python integers."""

from pathlib import Path

import numpy as np
import pytest

from engine import Activation, BuildError, Quantization, RuntimeGraph, TensorScale
from engine.dtypes import Array
from engine.quantization import layer
from engine.quantization.layer import dynamic_steps
from engine.quantization.weights import quantize_weights
from tests.engine.models import write_model

CONVOLUTION = """
pnnx.Input in 0 1 x #x=(1,3,6,7)f32
nn.Conv2d conv 1 1 x y in_channels=3 out_channels=5 kernel_size=(3,3) stride=(2,1) padding=(1,1) dilation=(1,1) \
groups=1 bias=True padding_mode=zeros @weight=(5,3,3,3)f32 @bias=(5)f32 #x=(1,3,6,7)f32
pnnx.Output out 1 0 y
"""
LINEAR = """
pnnx.Input in 0 1 x #x=(4,6)f32
nn.Linear fc 1 1 x y in_features=6 out_features=3 bias=True @weight=(3,6)f32 @bias=(3)f32 #x=(4,6)f32
pnnx.Output out 1 0 y
"""


def write_convolution(folder: Path) -> tuple[Path, Array, Array]:
    random = np.random.default_rng(0)
    weight = random.standard_normal((5, 3, 3, 3)).astype(np.float32)
    bias = random.standard_normal(5).astype(np.float32)
    return write_model(folder, CONVOLUTION, {"conv.weight": weight, "conv.bias": bias}), weight, bias


def write_linear(folder: Path) -> tuple[Path, Array, Array]:
    random = np.random.default_rng(0)
    weight, bias = (random.standard_normal(shape).astype(np.float32) for shape in ((3, 6), 3))
    return write_model(folder, LINEAR, {"fc.weight": weight, "fc.bias": bias}), weight, bias


def opened(param: Path, quantization: Quantization, backend: str = "numpy") -> RuntimeGraph:
    graph = RuntimeGraph(param, backend=backend, quantization=quantization)
    graph.build()
    return graph


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_convolution_sums_integers_exactly(tmp_path: Path, backend: str) -> None:
    param, weight, bias = write_convolution(tmp_path)
    scale = TensorScale(0.02, 100)
    graph = opened(param, Quantization({"conv": Activation.STATIC}, {"x": scale}), backend)
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 7)).astype(np.float32)
    (y,) = graph.forward([x])
    steps = np.pad(scale.integers(x).astype(int) - 100, ((0, 0), (0, 0), (1, 1), (1, 1)))
    weights = quantize_weights(weight)
    for place in np.ndindex(y.shape):
        _, channel, row, column = place
        window = steps[0, :, 2 * row : 2 * row + 3, column : column + 3]
        total = int((window * weights.integers[channel].astype(int)).sum())
        factor = np.float32(0.02) * weights.scales[channel]
        assert y[place] == np.float32(np.float32(total) * factor) + bias[channel]


GROUPED = """
pnnx.Input in 0 1 x #x=(1,8,6,7)f32
nn.Conv2d conv 1 1 x y in_channels=8 out_channels=4 kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) \
groups=2 bias=True padding_mode=zeros @weight=(4,4,3,3)f32 @bias=(4)f32 #x=(1,8,6,7)f32
pnnx.Output out 1 0 y
"""


@pytest.mark.parametrize(
    ("text", "shape"), [(CONVOLUTION, (5, 3, 3, 3)), (GROUPED, (4, 4, 3, 3)), (LINEAR, (3, 6))]
)
def test_filters_are_the_same_one_by_one_and_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, shape: tuple[int, ...]
) -> None:
    name = "fc" if text == LINEAR else "conv"
    random = np.random.default_rng(0)
    weights = {
        f"{name}.weight": random.standard_normal(shape).astype(np.float32),
        f"{name}.bias": random.standard_normal(shape[0]).astype(np.float32),
    }
    quantization = Quantization({name: Activation.STATIC}, {"x": TensorScale(0.02, 100)})
    graph = opened(write_model(tmp_path, text, weights), quantization)
    x = random.standard_normal(
        (4, 6) if text == LINEAR else (1, shape[1] * (1 + (text == GROUPED)), 6, 7)
    ).astype(np.float32)
    (at_once,) = graph.forward([x])
    monkeypatch.setattr(layer, "_PART_BYTES", 1)
    (one_by_one,) = graph.forward([x])
    np.testing.assert_array_equal(one_by_one, at_once, strict=True)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_linear_layer_takes_scales_from_its_rows(tmp_path: Path, backend: str) -> None:
    param, weight, bias = write_linear(tmp_path)
    graph = opened(param, Quantization({"fc": Activation.DYNAMIC}), backend)
    x = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32) * [[1], [100], [1e-6], [0]]
    x = x.astype(np.float32)
    (y,) = graph.forward([x])
    exact = x.astype(float) @ weight.T + bias
    step = np.abs(x).max(axis=1, keepdims=True) / 127
    allowed = (
        step * np.abs(weight).sum(axis=1) + np.abs(x).sum(axis=1, keepdims=True) * np.abs(weight).max() / 254
    )
    assert (np.abs(y - exact) <= allowed * 0.6 + 1e-6).all()
    # a row's result does not depend on the others
    for row in range(4):
        alone = opened(param, Quantization({"fc": Activation.DYNAMIC}), backend).forward([x[[row] * 4]])[0]
        assert (alone[0] == y[row]).all()


def test_extreme_rows_have_finite_steps() -> None:
    x = np.array([[0, 0, 0], [3e38, -1e-40, 0], [1e-30, 0, -1e-30], [1e30, 0, -1e30]], np.float32)
    steps, scales = dynamic_steps(x)
    assert steps.tolist() == [[0, 0, 0], [127, 0, 0], [127, 0, -127], [127, 0, -127]]
    assert np.isfinite(scales).all()
    assert (scales > 0).all()


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [6, 37])
def test_a_row_that_is_not_finite_gives_nan_and_leaves_the_others_alone(
    tmp_path: Path, backend: str, value: float, columns: int
) -> None:
    weight = np.random.default_rng(0).standard_normal((5, columns)).astype(np.float32)
    line = f"nn.Linear fc 1 1 x y bias=False @weight=(5,{columns})f32"
    text = f"pnnx.Input in 0 1 x\n{line}\npnnx.Output out 1 0 y"
    param = write_model(tmp_path, text, {"fc.weight": weight})
    graph = opened(param, Quantization({"fc": Activation.DYNAMIC}), backend)
    x = np.random.default_rng(1).standard_normal((4, columns)).astype(np.float32)
    (plain,) = graph.forward([x])
    x[1, columns - 1] = value
    (y,) = graph.forward([x])
    assert np.isnan(y[1]).all()
    np.testing.assert_array_equal(np.delete(y, 1, axis=0), np.delete(plain, 1, axis=0))


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3.4e38])
def test_extreme_inputs_give_finite_results(tmp_path: Path, backend: str, value: float) -> None:
    param, *_ = write_convolution(tmp_path)
    graph = opened(param, Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.02, 100)}), backend)
    (y,) = graph.forward([np.full((1, 3, 6, 7), value, np.float32)])
    assert np.isfinite(y).all()


def test_outputs_with_a_scale_are_rounded_to_it(tmp_path: Path) -> None:
    param, *_ = write_convolution(tmp_path)
    x = np.random.default_rng(1).standard_normal((1, 3, 6, 7)).astype(np.float32)
    plain, rounded = (
        opened(param, Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.02, 100)} | scales))
        for scales in ({}, {"y": TensorScale(0.25, 128)})
    )
    assert (TensorScale(0.25, 128).rounded(plain.forward([x])[0]) == rounded.forward([x])[0]).all()


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    weight = np.full((3, 6), np.nan, np.float32)
    param = write_model(tmp_path, LINEAR, {"fc.weight": weight, "fc.bias": np.zeros(3, np.float32)})
    with pytest.raises(BuildError, match="layer 'fc': weights are not all finite"):
        opened(param, Quantization({"fc": Activation.DYNAMIC}))


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        (Quantization({"nothing": Activation.STATIC}), "layer 'nothing': is not in the graph"),
        (Quantization({"in": Activation.STATIC}), "layer 'in': is a pnnx.Input"),
        (Quantization({"conv": Activation.STATIC}), "layer 'conv': its input 'x' has no scale"),
        (Quantization({"conv": Activation.DYNAMIC}), "layer 'conv': is a convolution with a dynamic input"),
        (Quantization({}, {"z": TensorScale(1, 0)}), "tensor 'z': the graph has no operand of this name"),
    ],
)
def test_what_does_not_fit_the_graph_is_refused(
    tmp_path: Path, quantization: Quantization, message: str
) -> None:
    param, *_ = write_convolution(tmp_path)
    with pytest.raises(BuildError, match=message):
        opened(param, quantization)


def test_weights_of_zeros_have_a_scale() -> None:
    weights = quantize_weights(np.zeros((2, 3), np.float32))
    assert not weights.integers.any()
    assert (weights.scales > 0).all()
    assert (quantize_weights(np.array([[1, -2, 0.5]], np.float32)).integers == [[64, -127, 32]]).all()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_scale_changes_no_indices(tmp_path: Path, backend: str) -> None:
    text = "pnnx.Input in 0 1 x\ntorch.argmax most 1 1 x y dim=1 keepdim=False\npnnx.Output out 1 0 y"
    param = write_model(tmp_path, text)
    graph = opened(param, Quantization({}, {"y": TensorScale(0.01, 0)}), backend)
    (y,) = graph.forward([np.array([[1, 2, 5, 4]], np.float32)])
    assert y.dtype == np.int64
    assert y.tolist() == [2]


@pytest.mark.parametrize("activation", list(Activation))
def test_results_have_the_dtype_of_the_input(tmp_path: Path, activation: Activation) -> None:
    text = LINEAR.replace("#x=(4,6)f32", "#x=(4,6)f16")
    random = np.random.default_rng(0)
    weight, bias = (random.standard_normal(shape).astype(np.float32) for shape in ((3, 6), 3))
    param = write_model(tmp_path, text, {"fc.weight": weight, "fc.bias": bias})
    graph = opened(param, Quantization({"fc": activation}, {"x": TensorScale(0.05, 100)}))
    (y,) = graph.forward([np.ones((4, 6), np.float16)])
    assert y.dtype == np.float16


def test_activations_may_be_given_by_name() -> None:
    quantization = Quantization({"fc": "dynamic", "conv": Activation.STATIC})  # type: ignore[dict-item]
    assert quantization.layers == {"fc": Activation.DYNAMIC, "conv": Activation.STATIC}
    with pytest.raises(BuildError, match="activation 'on' of fc is unknown; expected one of static, dynamic"):
        Quantization({"fc": "on"})  # type: ignore[dict-item]
