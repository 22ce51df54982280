"""Activation functions on vectors and scalars alike, under PyTorch's names; parameters are constants.

Errors are relative ones, the largest over all binades of float32 against float64, on targets with fma.
"""

import math
from collections.abc import Callable

from engine.compiler.emit import half_integral
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import F32, IRValue
from engine.compiler.emit.vector_math import bounded, erf, exp, exp_plus_one, expm1, log1p, tanh

_ROOT_2_PI = math.sqrt(2 / math.pi)


def clamp(e: Emitter, x: IRValue, low: IRValue, high: IRValue) -> IRValue:
    """min(max(x, low), high)."""
    return e.fmin(high, e.fmax(low, x))


def relu(e: Emitter, x: IRValue) -> IRValue:
    """max(x, 0)."""
    return e.fmax(e.like(x, 0.0), x)


def leaky_relu(e: Emitter, x: IRValue, slope: IRValue) -> IRValue:
    """Compute x where x > 0, else slope · x; with one slope a channel this is PReLU."""
    return e.select(e.builder.fcmp_ordered(">", x, e.like(x, 0.0)), x, e.fmul(slope, x))


def sigmoid(e: Emitter, x: IRValue) -> IRValue:
    """1 / (1 + e^-x); off by 2.2e-7, and 0 below x = -88.7."""
    return e.fdiv(e.like(x, 1.0), exp_plus_one(e, x, -1))


def silu(e: Emitter, x: IRValue) -> IRValue:
    """Compute x · sigmoid(x); off by 2.2e-7, and -0 below x = -88.7. -inf makes NaN, as in PyTorch."""
    return e.fdiv(x, exp_plus_one(e, x, -1))


def hardsigmoid(e: Emitter, x: IRValue) -> IRValue:
    """min(max(x + 3, 0), 6) / 6."""
    return e.fmul(bounded(e, e.fadd(x, e.like(x, 3.0)), 0.0, 6.0), e.like(x, 1 / 6))


def hardswish(e: Emitter, x: IRValue) -> IRValue:
    """Compute x · hardsigmoid(x)."""
    return e.fmul(x, hardsigmoid(e, x))


def gelu(e: Emitter, x: IRValue) -> IRValue:
    """Compute x · (1 + erf(x / sqrt(2))) / 2; off by 1.5e-7 of x."""
    if e.lanes == half_integral.LANES:
        return _gelu_by_table(e, x)
    half = e.fmul(x, e.like(x, 0.5))
    return e.fma(half, erf(e, e.fmul(x, e.like(x, math.sqrt(0.5)))), half)


def _gelu_by_table(e: Emitter, x: IRValue) -> IRValue:
    """Return x / 2 + |x| · the integral of the normal distribution's density from 0 to |x|."""
    if x.type == F32:  # a scalar gets the digits that it would get in a vector
        return e.extract(_gelu_by_table(e, e.broadcast(x)), 0)
    magnitude = e.call("llvm.fabs", x)
    return e.fma(magnitude, half_integral.half_integral(e, magnitude), e.fmul(x, e.splat(0.5)))


def gelu_tanh(e: Emitter, x: IRValue) -> IRValue:
    """Compute x · (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))) / 2; off by 1.5e-7 of x."""
    inner = e.fma(e.fmul(x, x), e.like(x, 0.044715 * _ROOT_2_PI), e.like(x, _ROOT_2_PI))
    half = e.fmul(x, e.like(x, 0.5))
    return e.fma(half, tanh(e, e.fmul(x, inner)), half)


def mish(e: Emitter, x: IRValue) -> IRValue:
    """Compute x · tanh(log(1 + e^x)) = x p / (p + 2) with p = e^x (e^x + 2), x itself from 20 on; off by 2.5e-7."""
    root = exp(e, e.fmin(e.like(x, 20.0), x))
    product = e.fmul(root, e.fadd(root, e.like(x, 2.0)))
    return e.fmul(x, e.fdiv(product, e.fadd(product, e.like(x, 2.0))))


def softplus(e: Emitter, x: IRValue, beta: IRValue, threshold: IRValue) -> IRValue:
    """log(1 + e^(beta x)) / beta, and x where beta x > threshold; off by 1.6e-7."""
    scaled = e.fmul(x, beta)
    # max(y, 0) + log(1 + e^-|y|) does not overflow
    small = log1p(e, exp(e, e.builder.fneg(e.call("llvm.fabs", scaled))))
    result = e.fdiv(e.fadd(e.fmax(e.like(x, 0.0), scaled), small), beta)
    return e.select(e.builder.fcmp_ordered(">", scaled, threshold), x, result)


def log_sigmoid(e: Emitter, x: IRValue) -> IRValue:
    """Compute log(1 / (1 + e^-x)) = min(x, 0) - log(1 + e^-|x|)."""
    small = log1p(e, exp(e, e.builder.fneg(e.call("llvm.fabs", x))))
    return e.fsub(e.fmin(e.like(x, 0.0), x), small)


def hardshrink(e: Emitter, x: IRValue, bound: IRValue) -> IRValue:
    """Compute 0 where |x| <= bound, else x; NaN stays."""
    is_small = e.builder.fcmp_ordered("<=", e.call("llvm.fabs", x), bound)
    return e.select(is_small, e.like(x, 0.0), x)


def threshold(e: Emitter, x: IRValue, limit: IRValue, value: IRValue) -> IRValue:
    """Compute value where x <= limit, else x; NaN stays."""
    return e.select(e.builder.fcmp_ordered("<=", x, limit), value, x)


def elu(e: Emitter, x: IRValue, alpha: IRValue, inner: IRValue | None = None) -> IRValue:
    """Compute x where x > 0, else alpha · (e^(inner · x) - 1), where inner is 1 by default; off by 1.3e-7."""
    power = e.fmin(e.like(x, 0.0), x)
    negative = e.fmul(alpha, expm1(e, power if inner is None else e.fmul(inner, power)))
    return e.select(e.builder.fcmp_ordered(">", x, e.like(x, 0.0)), x, negative)


FUNCTIONS: dict[str, Callable[..., IRValue]] = {
    "clamp": clamp,
    "elu": elu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "hardshrink": hardshrink,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "hardtanh": clamp,
    "leaky_relu": leaky_relu,
    "log_sigmoid": log_sigmoid,
    "mish": mish,
    "relu": relu,
    "relu6": lambda e, x: bounded(e, x, 0.0, 6.0),
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "threshold": threshold,
}
"""PyTorch's name -> what writes the function."""
