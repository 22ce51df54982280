"""Activation functions, elementwise. A float16 input is computed in float32 and rounded once."""

from collections.abc import Callable

import numpy as np

from engine.binding.arguments import Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import activation as kernels
from engine.kernels.activation import activate
from engine.kernels.axes import axis
from engine.kernels.casting import to_float
from engine.kernels.promotion import floating
from engine.layers.checks import check_dtype, check_kind, check_min_rank, keeps
from engine.spec import TensorSpec


def _floats(kinds: str) -> Callable[..., TensorSpec]:
    """Make the rule of a function that keeps the shape and converts integers to float32."""

    def infer(input: TensorSpec) -> TensorSpec:
        check_kind("input", input, kinds)
        return TensorSpec(input.shape, floating(input.dtype))

    return infer


@layer("nn.ReLU", "F.relu", infer=keeps("iuf"))
def relu(input: Array) -> Array:
    """Compute max(x, 0)."""
    return activate(kernels.relu, input)


@layer("nn.ReLU6", "F.relu6", infer=keeps("iuf"))
def relu6(input: Array) -> Array:
    """Compute min(max(x, 0), 6)."""
    return activate(kernels.clamp, input, 0, 6)


def _infer_hardtanh(input: TensorSpec, min_val: Number, max_val: Number) -> TensorSpec:
    check_kind("input", input, "if")
    if _bound("min_val", min_val, input) > _bound("max_val", max_val, input):
        raise ArgumentError("min_val", f"{min_val} is above max_val, {max_val}", "a lower or equal bound")
    return input


@layer("nn.Hardtanh", "F.hardtanh", infer=_infer_hardtanh)
def hardtanh(input: Array, min_val: Number = -1.0, max_val: Number = 1.0) -> Array:
    """Compute min(max(x, min_val), max_val); integers take bounds cut to integers."""
    low, high = _bound("min_val", min_val, input), _bound("max_val", max_val, input)
    return activate(kernels.clamp, input, low, high)


def _infer_threshold(input: TensorSpec, threshold: Number, value: Number) -> TensorSpec:
    check_kind("input", input, "iuf")
    _bound("threshold", threshold, input)
    _bound("value", value, input)
    return input


@layer("nn.Threshold", "F.threshold", infer=_infer_threshold)
def threshold(input: Array, threshold: Number, value: Number) -> Array:
    """Compute x where x > threshold, else value."""
    limit, other = _bound("threshold", threshold, input), _bound("value", value, input)
    return activate(kernels.threshold, input, limit, other)


def _bound(name: str, value: Number, input: Array | TensorSpec) -> float:
    """Return a bound as a number of the input's kind, cut to an integer where the input is of integers."""
    if isinstance(value, complex):
        raise ArgumentError(name, f"is {value}", "a real number")
    if input.dtype.kind not in "iu":
        return value
    limits = np.iinfo(input.dtype)
    if not limits.min <= value <= limits.max:
        raise ArgumentError(name, f"is {value}", f"a number from {limits.min} to {limits.max}")
    return int(value)


@layer("nn.LeakyReLU", "F.leaky_relu", infer=keeps("f"))
def leaky_relu(input: Array, negative_slope: float = 0.01) -> Array:
    """Compute x where x > 0, else negative_slope · x."""
    return activate(kernels.leaky_relu, input, negative_slope)


@layer("nn.RReLU", "F.rrelu", infer=keeps("f"))
def rrelu(input: Array, lower: float = 1 / 8, upper: float = 1 / 3) -> Array:
    """Compute leaky ReLU with the mean of the bounds, which is what it is outside of training."""
    return activate(kernels.leaky_relu, input, (lower + upper) / 2)


def _infer_prelu(input: TensorSpec, weight: TensorSpec) -> TensorSpec:
    check_kind("input", input, "f")
    check_dtype("weight", weight, input)
    channels = input.shape[1] if input.rank > 1 else 1
    if weight.rank > 1 or weight.size not in (1, channels):
        raise ArgumentError(
            "weight", f"shape {weight.shape}", f"one slope, or {channels} of them, one per channel"
        )
    return input


@layer("nn.PReLU", "F.prelu", infer=_infer_prelu)
def prelu(input: Array, weight: Array) -> Array:
    """Compute x where x > 0, else weight · x, with one weight for all or one per channel (dimension 1)."""
    shape = () if weight.size == 1 else (-1,) + (1,) * (input.ndim - 2)
    return kernels.prelu(input, weight.reshape(shape))


@layer("nn.ELU", "F.elu", infer=keeps("f"))
def elu(input: Array, alpha: float = 1.0) -> Array:
    """Compute x where x > 0, else alpha · (exp(x) - 1)."""
    return activate(kernels.elu, input, alpha)


@layer("nn.SELU", "F.selu", infer=keeps("f"))
def selu(input: Array) -> Array:
    """Compute scale · elu(x, alpha) with the constants that keep activations normalised."""
    return activate(kernels.elu, input, kernels.SELU_ALPHA, kernels.SELU_SCALE)


def _infer_celu(input: TensorSpec, alpha: float) -> TensorSpec:
    check_kind("input", input, "f")
    if alpha == 0:
        raise ArgumentError("alpha", "is 0", "any other number")
    return input


@layer("nn.CELU", "F.celu", infer=_infer_celu)
def celu(input: Array, alpha: float = 1.0) -> Array:
    """Compute max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0)."""
    return activate(kernels.elu, input, alpha, 1.0, 1 / alpha)


@layer("nn.Sigmoid", "F.sigmoid", infer=_floats("biufc"))
def sigmoid(input: Array) -> Array:
    """Compute 1 / (1 + exp(-x))."""
    return activate(kernels.sigmoid, to_float(input))


@layer("nn.LogSigmoid", "F.logsigmoid", infer=keeps("f"))
def log_sigmoid(input: Array) -> Array:
    """Compute log(sigmoid(x))."""
    return activate(kernels.log_sigmoid, input)


@layer("nn.Hardsigmoid", "F.hardsigmoid", infer=keeps("f"))
def hardsigmoid(input: Array) -> Array:
    """Compute min(max(x + 3, 0), 6) / 6."""
    return activate(kernels.hardsigmoid, input)


@layer("nn.SiLU", "F.silu", infer=keeps("fc"))
def silu(input: Array) -> Array:
    """Compute x · sigmoid(x)."""
    return activate(kernels.silu, input)


@layer("nn.Hardswish", "F.hardswish", infer=keeps("f"))
def hardswish(input: Array) -> Array:
    """Compute x · hardsigmoid(x)."""
    return activate(kernels.hardswish, input)


@layer("nn.Mish", "F.mish", infer=keeps("f"))
def mish(input: Array) -> Array:
    """Compute x · tanh(softplus(x))."""
    return activate(kernels.mish, input)


def _infer_gelu(input: TensorSpec, approximate: str) -> TensorSpec:
    check_kind("input", input, "f")
    if approximate not in _GELU:
        raise ArgumentError("approximate", f"is {approximate!r}", " or ".join(map(repr, _GELU)))
    return input


_GELU = {"none": kernels.gelu, "tanh": kernels.gelu_tanh}


@layer("nn.GELU", "F.gelu", infer=_infer_gelu)
def gelu(input: Array, approximate: str = "none") -> Array:
    """Compute x · Φ(x), exactly or by its tanh approximation."""
    return activate(_GELU[approximate], input)


@layer("nn.Tanh", "F.tanh", infer=_floats("biufc"))
def tanh(input: Array) -> Array:
    """Compute the hyperbolic tangent."""
    return activate(kernels.tanh, to_float(input))


@layer("nn.Tanhshrink", "F.tanhshrink", infer=_floats("iufc"))
def tanhshrink(input: Array) -> Array:
    """Compute x - tanh(x)."""
    return activate(kernels.tanhshrink, to_float(input))


@layer("nn.Softsign", "F.softsign", infer=_floats("iufc"))
def softsign(input: Array) -> Array:
    """Compute x / (1 + |x|)."""
    return activate(kernels.softsign, to_float(input))


@layer("nn.Softplus", "F.softplus", infer=keeps("f"))
def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Compute log(1 + exp(beta · x)) / beta, and x where beta · x > threshold."""
    return activate(kernels.softplus, input, beta, threshold)


@layer("nn.Hardshrink", "F.hardshrink", infer=keeps("f"))
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """Compute 0 where |x| <= lambd, else x."""
    return activate(kernels.hardshrink, input, lambd)


def _infer_softshrink(input: TensorSpec, lambd: float) -> TensorSpec:
    check_kind("input", input, "f")
    if not lambd >= 0:
        raise ArgumentError("lambd", f"is {lambd}", "0 or more")
    return input


@layer("nn.Softshrink", "F.softshrink", infer=_infer_softshrink)
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """Compute x - lambd above lambd, x + lambd below -lambd, else 0."""
    return activate(kernels.softshrink, input, lambd)


def _infer_glu(input: TensorSpec, dim: int) -> TensorSpec:
    check_kind("input", input, "f")
    check_min_rank("input", input, 1)
    place = axis(dim, input.rank)
    size, odd = divmod(input.shape[place], 2)
    if odd:
        raise ArgumentError(
            "input", f"size {input.shape[place]} in dimension {place}", "an even size to halve"
        )
    return input.with_shape((*input.shape[:place], size, *input.shape[place + 1 :]))


@layer("nn.GLU", "F.glu", infer=_infer_glu)
def glu(input: Array, dim: int = -1) -> Array:
    """Compute a · sigmoid(b) of the two halves a, b of the input along `dim`."""
    return kernels.glu(input, dim)
