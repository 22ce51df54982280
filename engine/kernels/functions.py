"""Elementwise functions of PyTorch that do not occur in expressions: isfinite, isclose, special functions."""

from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.kernels.elementwise import UNARY
from engine.kernels.promotion import Dtype
from engine.kernels.special import digamma, erfc, erfinv
from engine.kernels.ufunc import Binary, UfuncPlan, Unary, compares, floats, keeps, takes_real

_SQRT_HALF = 0.5**0.5


def _false(x: Array, out: Array | None) -> Any:
    del out
    return np.zeros(x.shape, np.bool_)


def _on_floats(ufunc: Any) -> Any:
    """Apply to floats and complex numbers; of integers and bools nothing is so."""
    return lambda x, out: ufunc(x, out=out) if x.dtype.kind in "fc" else _false(x, out)


def _is_finite(x: Array, out: Array | None) -> Any:
    return np.isfinite(x, out=out) if x.dtype.kind in "fc" else np.ones(x.shape, np.bool_)


def _is_real(x: Array, out: Array | None) -> Any:
    return np.equal(x.imag, 0, out=out)


def _sign_bit(x: Array, out: Array | None) -> Any:
    if x.dtype.kind == "b":
        return _false(x, out)
    return np.signbit(x, out=out) if x.dtype.kind == "f" else np.less(x, 0, out=out)


def _sgn(x: Array, out: Array | None) -> Any:
    if x.dtype.kind != "c":
        return UNARY["sign"](x, out)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _angle(x: Array, out: Array | None) -> Any:
    del out
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


def _times(factor: float) -> Any:
    return lambda x, out: np.multiply(x, x.dtype.type(factor), out)


def _entropy(x: Array, out: Array | None) -> Any:
    del out
    inside = np.where(x == 0, x, -x * np.log(x))
    return np.where(x < 0, x.dtype.type(-np.inf), inside)


def _normal(x: Array, out: Array | None) -> Any:
    """Compute the share of a normal distribution below x."""
    return np.multiply(erfc(-x * x.dtype.type(_SQRT_HALF)), x.dtype.type(0.5), out)


def _sinc(x: Array, out: Array | None) -> Any:
    del out
    angle = x * x.dtype.type(np.pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(angle) / np.where(x == 0, 1, angle))


def _bessel(x: Array, out: Array | None) -> Any:
    del out
    return np.i0(np.asarray(x, np.float64)).astype(x.dtype).reshape(x.shape)


def _times_log(logarithm: Any) -> Any:
    """Multiply with a logarithm, which does not matter where the factor is 0 unless it is of NaN."""

    def compute(a: Array, b: Array, out: Array | None) -> Any:
        del out
        # a number has no dtype of its own, and must not make float32 float64
        b = np.asarray(b, np.result_type(a, b))
        product = np.asarray(a * logarithm(b))
        return np.where(np.isnan(b), np.nan, np.where(np.asarray(a) == 0, 0, product)).astype(product.dtype)

    return compute


def _scale(a: Array, b: Array, out: Array | None) -> Any:
    # a number has no dtype of its own, and must not make float32 float64
    return np.multiply(a, np.exp2(np.asarray(b, np.result_type(a, b))), out)


def _heaviside(a: Array, b: Array, out: Array | None) -> Any:
    del out
    return np.where(np.asarray(a) == 0, b, np.asarray(a) > 0).astype(np.result_type(a))


def _real_floats(dtype: Dtype) -> UfuncPlan:
    return takes_real(dtype) if dtype.kind == "c" else floats(dtype)


_UNARY = (
    Unary("angle", _angle, _real_floats),
    Unary("deg2rad", _times(np.pi / 180), floats, "biuf"),
    Unary("digamma", digamma, floats, "biuf"),
    Unary("erfc", erfc, floats, "biuf"),
    Unary("erfinv", erfinv, floats, "biuf"),
    Unary("exp2", np.exp2, floats),
    Unary("frac", lambda x, out: np.subtract(x, np.trunc(x), out), keeps, "f"),
    Unary("i0", _bessel, floats, "biuf"),
    Unary("isfinite", _is_finite, compares),
    Unary("isinf", _on_floats(np.isinf), compares),
    Unary("isnan", _on_floats(np.isnan), compares),
    Unary("isneginf", lambda x, out: np.equal(x, -np.inf, out=out), compares, "biuf"),
    Unary("isposinf", lambda x, out: np.equal(x, np.inf, out=out), compares, "biuf"),
    Unary("isreal", _is_real, compares),
    Unary("log2", np.log2, floats),
    Unary("rad2deg", _times(180 / np.pi), floats, "biuf"),
    Unary("sgn", _sgn, keeps),
    Unary("signbit", _sign_bit, compares, "biuf"),
    Unary("sinc", _sinc, floats),
    Unary("special_entr", _entropy, floats, "biuf"),
    Unary("special_ndtr", _normal, floats, "biuf"),
)

_BINARY = (
    Binary("copysign", np.copysign, floats, "biuf"),
    Binary("fmax", lambda a, b, out: np.fmax(a, b, out=out), keeps, "biuf"),
    Binary("fmin", lambda a, b, out: np.fmin(a, b, out=out), keeps, "biuf"),
    Binary("gcd", np.gcd, keeps, "iu"),
    Binary("heaviside", _heaviside, keeps, "biuf"),
    Binary("hypot", np.hypot, keeps, "f"),
    Binary("lcm", np.lcm, keeps, "iu"),
    Binary("ldexp", _scale, floats),
    Binary("logaddexp2", np.logaddexp2, keeps, "f"),
    Binary("nextafter", np.nextafter, keeps, "f"),
    Binary("special_xlog1py", _times_log(np.log1p), floats, "biuf"),
    Binary("xlogy", _times_log(np.log), floats, "biuf"),
)

MORE_UNARY: dict[str, Unary] = {kernel.name: kernel for kernel in _UNARY}
"""ATen's name -> kernel, for functions of one tensor."""

MORE_BINARY: dict[str, Binary] = {kernel.name: kernel for kernel in _BINARY}
"""ATen's name -> kernel, for functions of two tensors, or a tensor and a number."""
