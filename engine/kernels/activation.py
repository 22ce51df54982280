"""Activation functions. Each kernel computes `out = f(x)` for arrays of one shape and dtype.

`out` never overlaps `x`, and `activate` is what calls them. Formulas are those of PyTorch's documentation, arranged
to take few passes. NaN stays NaN unless PyTorch has it otherwise.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from engine.dtypes import Array
from engine.kernels.casting import narrow, widen
from engine.kernels.special import erf

ActivationKernel: TypeAlias = Callable[..., None]
"""`kernel(x, out, *parameters)`."""

_BLOCK = 1 << 16
"""Elements computed at a time: a kernel's passes then find their block in the second-level cache."""

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def activate(kernel: ActivationKernel, x: Array, *parameters: float) -> Array:
    """Run an elementwise kernel on an array of any shape; float16 is computed in float32.

    Returns:
        A new array of `x`'s shape and dtype.
    """
    computed = widen(x)
    out = np.empty_like(computed, subok=False)
    if computed.flags.c_contiguous:
        flat, flat_out = computed.reshape(-1), out.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            kernel(flat[start : start + _BLOCK], flat_out[start : start + _BLOCK], *parameters)
    else:
        kernel(computed, out, *parameters)
    return narrow(out, x.dtype)


def relu(x: Array, out: Array) -> None:
    """Compute max(x, 0)."""
    np.maximum(x, 0, out=out)


def clamp(x: Array, out: Array, low: float, high: float) -> None:
    """Compute min(max(x, low), high)."""
    np.maximum(x, low, out=out)
    np.minimum(out, high, out=out)


def leaky_relu(x: Array, out: Array, slope: float | Array) -> None:
    """Compute x where x > 0, else slope · x: max(x, 0) + slope · min(x, 0), as picking by a mask is slow."""
    if isinstance(slope, float) and 0 < slope <= 1:
        np.multiply(x, slope, out=out)
        np.maximum(x, out, out=out)
        return
    np.minimum(x, 0, out=out)
    out *= slope
    out += np.maximum(x, 0)


def elu(x: Array, out: Array, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> None:
    """Compute scale · x where x > 0, else scale · alpha · (exp(input_scale · x) - 1)."""
    np.minimum(x, 0, out=out)
    if input_scale != 1:
        out *= input_scale
    np.expm1(out, out=out)
    out *= alpha * scale
    positive = np.maximum(x, 0)
    if scale != 1:
        positive *= scale
    out += positive


def sigmoid(x: Array, out: Array) -> None:
    """Compute 1 / (1 + exp(-x))."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.reciprocal(out, out=out)


def silu(x: Array, out: Array) -> None:
    """Compute x · sigmoid(x)."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    np.divide(x, out, out=out)


def hardsigmoid(x: Array, out: Array) -> None:
    """Compute min(max(x + 3, 0), 6) / 6."""
    np.add(x, 3, out=out)
    clamp(out, out, 0, 6)
    out *= 1 / 6


def hardswish(x: Array, out: Array) -> None:
    """Compute x · hardsigmoid(x)."""
    hardsigmoid(x, out)
    out *= x


def tanh(x: Array, out: Array) -> None:
    """Compute the hyperbolic tangent."""
    np.tanh(x, out=out)


_GELU_FIT = (
    *(7.97884941e-01, 3.63330846e-02, -3.25949732e-05, -5.53061948e-05),
    *(3.96474463e-06, -1.32263358e-07, 1.75617130e-09),
)
"""q of erf(x / √2) = tanh(x · q(x²)), lowest power first; weighted least squares on [0, 6], off by at most 6e-8."""


def gelu(x: Array, out: Array) -> None:
    """Compute x · Φ(x), with the normal distribution's Φ(x) = (1 + erf(x / √2)) / 2.

    In float32 erf is a hyperbolic tangent, which numpy has fast, of a fitted polynomial.
    """
    if x.dtype == np.float32:
        squared = np.multiply(x, x)
        np.multiply(squared, np.float32(_GELU_FIT[-1]), out=out)
        for coefficient in _GELU_FIT[-2:0:-1]:
            out += np.float32(coefficient)
            out *= squared
        out += np.float32(_GELU_FIT[0])
        out *= x
        np.tanh(out, out=out)
    else:
        np.multiply(x, math.sqrt(0.5), out=out)
        erf(out, out)
    out += 1
    out *= x
    out *= 0.5


def gelu_tanh(x: Array, out: Array) -> None:
    """Compute x · (1 + tanh(√(2/π) · (x + 0.044715 x³))) / 2."""
    np.multiply(x, x, out=out)
    out *= 0.044715
    out += 1
    out *= x
    out *= math.sqrt(2 / math.pi)
    np.tanh(out, out=out)
    out += 1
    out *= x
    out *= 0.5


def log_sigmoid(x: Array, out: Array) -> None:
    """Compute log(sigmoid(x)) = min(x, 0) - log(1 + exp(-|x|))."""
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    np.subtract(np.minimum(x, 0), out, out=out)


def softplus(x: Array, out: Array, beta: float, threshold: float) -> None:
    """Compute log(1 + exp(beta · x)) / beta, and x where beta · x > threshold."""
    np.multiply(x, beta, out=out)
    linear = out > threshold
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out /= beta
    if linear.any():
        np.copyto(out, x, where=linear)


def mish(x: Array, out: Array) -> None:
    """Compute x · tanh(log(1 + eˣ)) = x · p / (p + 2) with p = eˣ (eˣ + 2): for large x, x itself."""
    power = np.exp(np.minimum(x, 20))
    np.add(power, 2, out=out)
    out *= power
    np.add(out, 2, out=power)
    out /= power
    out *= x


def softsign(x: Array, out: Array) -> None:
    """Compute x / (1 + |x|)."""
    np.divide(x, 1 + np.abs(x), out=out)


def tanhshrink(x: Array, out: Array) -> None:
    """Compute x - tanh(x)."""
    np.tanh(x, out=out)
    np.subtract(x, out, out=out)


def hardshrink(x: Array, out: Array, lambd: float) -> None:
    """Compute 0 where -lambd <= x <= lambd, else x."""
    np.abs(x, out=out)
    np.multiply(x, out > lambd, out=out)


def softshrink(x: Array, out: Array, lambd: float) -> None:
    """Compute x drawn towards 0 by lambd: x - min(max(x, -lambd), lambd)."""
    clamp(x, out, -lambd, lambd)
    np.subtract(x, out, out=out)


def threshold(x: Array, out: Array, threshold: float, value: float) -> None:
    """Compute value where x <= threshold, else x."""
    np.copyto(out, x)
    np.copyto(out, value, where=x <= threshold, casting="same_kind")


def glu(x: Array, axis: int) -> Array:
    """Compute the first half of `x` along `axis`, times the sigmoid of the second half."""
    computed = widen(x)
    values, gates = np.split(computed, 2, axis)
    out = np.empty_like(gates, subok=False)
    sigmoid(gates, out)
    out *= values
    return narrow(out, x.dtype)


def prelu(x: Array, weight: Array) -> Array:
    """`x` where x > 0, else weight · x; `weight` broadcasts against `x`."""
    computed = widen(x)
    out = np.empty_like(computed, subok=False)
    leaky_relu(computed, out, weight)
    return narrow(out, x.dtype)
