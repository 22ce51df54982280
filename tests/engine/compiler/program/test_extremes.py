"""Inputs at the ends of float32 in each precision: whatever numpy's float32 finds finite stays finite, and near it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import Activation, Quantization, RuntimeGraph, TensorScale
from engine.dtypes import Array
from tests.differential.rounding import always_rounding
from tests.engine.models import write_model

LINES = """
pnnx.Input in 0 1 x #x=(2,20,9,12)f32
nn.Conv2d conv 1 1 x a bias=True dilation=(1,1) groups=1 in_channels=20 kernel_size=(3,3) out_channels=24 \
padding=(1,1) padding_mode=zeros stride=(1,1) @weight=(24,20,3,3)f32 @bias=(24)f32
nn.ReLU relu 1 1 a b
nn.Linear linear 1 1 b c bias=True in_features=12 out_features=40 @weight=(40,12)f32 @bias=(40)f32
F.softmax softmax 1 1 c d dim=3
pnnx.Output out1 1 0 c
pnnx.Output out2 1 0 d
""".replace("\\\n", "").strip()
SHAPE = (2, 20, 9, 12)
_MIDDLE = (1, 7, 4, 5)


def drawn(scale: float) -> Array:
    return (np.random.default_rng(1).standard_normal(SHAPE) * scale).astype(np.float32)


def with_one(value: float, scale: float = 1.0) -> Array:
    array = drawn(scale)
    array[_MIDDLE] = value
    return array


INPUTS: dict[str, Callable[[], Array]] = {
    "zeros": lambda: np.zeros(SHAPE, np.float32),
    "negative zeros": lambda: np.full(SHAPE, -0.0, np.float32),
    "one number": lambda: np.full(SHAPE, 7.25, np.float32),
    "subnormal": lambda: drawn(1e-40),
    "tiny": lambda: drawn(1e-38),
    "large": lambda: drawn(1e34),
    "one large": lambda: with_one(1e36),
    "largest": lambda: with_one(3.4028235e38, 0.0),
    "infinity": lambda: with_one(np.inf),
    "NaN": lambda: with_one(np.nan),
}


@pytest.fixture
def param(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    shapes = {
        "conv.weight": (24, 20, 3, 3),
        "conv.bias": (24,),
        "linear.weight": (40, 12),
        "linear.bias": (40,),
    }
    weights = {
        name: random.standard_normal(shape).astype(np.float32) * 0.02 for name, shape in shapes.items()
    }
    return write_model(tmp_path, LINES, weights)


def graphs(param: Path, precision: str, threads: int) -> tuple[RuntimeGraph, RuntimeGraph]:
    quantization = None
    if precision == "int8":
        layers = {"conv": Activation.STATIC, "linear": Activation.DYNAMIC}
        quantization = Quantization(layers, {"x": TensorScale(0.03, 128)})
    rounded = RuntimeGraph(
        param,
        precision=precision,
        quantization=quantization,
        backend="native",
        threads=threads,
        verify="always",
    )
    plain = RuntimeGraph(param, backend="numpy")
    for graph in (rounded, plain):
        graph.build()
    return rounded, plain


@pytest.fixture(autouse=True)
def _rounds() -> Iterator[None]:
    with always_rounding():
        yield


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_what_is_finite_in_float32_stays_finite(param: Path, precision: str, threads: int) -> None:
    rounded, plain = graphs(param, precision, threads)
    for name, make in INPUTS.items():
        x = make()
        with np.errstate(all="ignore"):
            wanted = plain.forward([x])
        outputs = rounded.forward([x])
        for ours, exact in zip(outputs, wanted, strict=True):
            assert np.isfinite(ours[np.isfinite(exact)]).all(), name
        if precision == "bf16":  # softmax makes anything of large differences; products do not
            known = np.isfinite(wanted[0])
            off = np.abs(outputs[0][known] - wanted[0][known]).max(initial=0.0)
            assert off <= 0.02 * np.abs(wanted[0][known]).max(initial=0.0), name
    assert not rounded.verification.refused


@pytest.mark.parametrize("name", ["infinity", "NaN"])
def test_bfloat16_hides_no_infinity_and_no_nan(param: Path, name: str) -> None:
    rounded, plain = graphs(param, "bf16", 1)
    x = INPUTS[name]()
    with np.errstate(all="ignore"):
        (wanted, _), (ours, _) = plain.forward([x]), rounded.forward([x])
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(wanted))
