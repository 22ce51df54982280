"""The elementwise functions of PyTorch: dtypes, rounding, integer division, special values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.dtypes import Array
from engine.kernels.promotion import FLOAT16, PythonScalar, result_type
from engine.kernels.special import erf, lgamma
from engine.kernels.ufunc import (
    ArrayFunction,
    Binary,
    UfuncPlan,
    Unary,
    cast,
    compares,
    counts_bool,
    floats,
    keeps,
    stays,
    takes_real,
)


def _copy(x: Array, out: Array | None) -> Array:
    if out is None:
        return x.copy()
    np.copyto(out, x)
    return out


def _rounds(ufunc: np.ufunc) -> ArrayFunction:
    """Round floats; integers are whole already."""

    def compute(x: Array, out: Array | None) -> Any:
        return _copy(x, out) if x.dtype.kind in "iu" else ufunc(x, out)

    return compute


def _sign(x: Array, out: Array | None) -> Any:
    if x.dtype.kind == "b":
        return _copy(x, out)
    signs = np.asarray(np.sign(x, out))
    if x.dtype.kind == "f":
        np.copyto(signs, 0, where=np.isnan(signs))
    return signs


def _rsqrt(x: Array, out: Array | None) -> Any:
    return np.reciprocal(np.sqrt(x, out), out)


def _divides(ufunc: np.ufunc) -> ArrayFunction:
    """Divide; integers refuse a zero divisor as PyTorch does."""

    def compute(a: Array, b: Array, out: Array | None) -> Any:
        if a.dtype.kind in "iu" and not np.all(b):
            raise ZeroDivisionError("integer division by zero")
        return ufunc(a, b, out)

    return compute


def _by_keyword(ufunc: np.ufunc) -> ArrayFunction:
    """Call a ufunc that does not take `out` by position."""
    return lambda a, b, out: ufunc(a, b, out=out)


class _Power(Binary):
    """`pow`, which refuses to raise integers to a negative number."""

    def prepare(self, a: Array | PythonScalar, b: Array | PythonScalar) -> tuple[UfuncPlan, Any, Any]:
        prepared = super().prepare(a, b)
        if isinstance(b, int) and b < 0 and prepared[0].computed.kind in "iu":
            raise ArithmeticError("integers have no negative powers")
        return prepared


_POWERS: dict[Any, Callable[[Array, Array | None], Any]] = {
    -2.0: lambda x, out: np.reciprocal(np.square(x, out), out),
    -1.0: np.reciprocal,
    -0.5: _rsqrt,
    0.5: np.sqrt,
    2.0: np.square,
    3.0: lambda x, out: np.multiply(np.square(x), x, out),
}
"""Exponents for which PyTorch, given them as a number, does not take logarithms: pow(-inf, 0.5) is NaN, not inf."""


def _power(base: Any, exponent: Any, out: Array | None) -> Any:
    if base.dtype.kind in "iu":
        return _integer_power(base, exponent, out)
    if base.dtype != FLOAT16 and isinstance(exponent, np.generic | int | float):
        shortcut = _POWERS.get(exponent)
        if shortcut is not None:
            return shortcut(base, out)
    return np.power(base, exponent, out)


def _integer_power(base: Any, exponent: Any, out: Array | None) -> Any:
    """Raise integers, wrapping around; of the negative powers of an integer only those of 1 and -1 are not 0."""
    negative = exponent < 0
    if not np.any(negative):
        return np.power(base, exponent, out)
    powers = np.power(base, np.maximum(exponent, 0))
    inverses = np.where(np.abs(base) == 1, np.where(exponent & 1, base, 1), 0)
    return np.where(negative, inverses, powers)


def _logaddexp(a: Array, b: Array, out: Array | None) -> Any:
    if a.dtype.kind != "c":
        return np.logaddexp(a, b, out)
    swap = a.real < b.real
    high, low = np.where(swap, b, a), np.where(swap, a, b)
    return np.add(high, np.log1p(np.exp(low - high)), out)


_UNARY = (
    Unary("abs", np.absolute, takes_real, "iufc"),
    Unary("acos", np.arccos, floats),
    Unary("acosh", np.arccosh, floats),
    Unary("asin", np.arcsin, floats),
    Unary("asinh", np.arcsinh, floats),
    Unary("atan", np.arctan, floats),
    Unary("atanh", np.arctanh, floats),
    Unary("bitwise_not", np.invert, keeps, "biu"),
    Unary("ceil", _rounds(np.ceil), keeps, "iuf"),
    Unary("cos", np.cos, floats),
    Unary("cosh", np.cosh, floats),
    Unary("erf", erf, floats, "biuf"),
    Unary("exp", np.exp, floats),
    Unary("exp2", np.exp2, floats),
    Unary("expm1", np.expm1, floats),
    Unary("floor", _rounds(np.floor), keeps, "iuf"),
    Unary("lgamma", lgamma, floats, "biuf"),
    Unary("log", np.log, floats),
    Unary("log10", np.log10, floats),
    Unary("log1p", np.log1p, floats),
    Unary("log2", np.log2, floats),
    Unary("logical_not", np.logical_not, compares),
    Unary("neg", np.negative, keeps, "iufc"),
    Unary("positive", _copy, keeps, "iufc"),
    Unary("reciprocal", np.reciprocal, floats),
    Unary("round", _rounds(np.rint), keeps, "iuf"),
    Unary("rsqrt", _rsqrt, floats),
    Unary("sign", _sign, keeps, "biuf"),
    Unary("sin", np.sin, floats),
    Unary("sinh", np.sinh, floats),
    Unary("sqrt", np.sqrt, floats),
    Unary("square", np.square, counts_bool),
    Unary("tan", np.tan, floats),
    Unary("tanh", np.tanh, floats),
    Unary("trunc", _rounds(np.trunc), keeps, "iuf"),
)

_BINARY = (
    Binary("add", np.add),
    Binary("atan2", np.arctan2, floats, "biuf"),
    Binary("bitwise_and", np.bitwise_and, keeps, "biu"),
    Binary("bitwise_left_shift", np.left_shift, keeps, "iu"),
    Binary("bitwise_or", np.bitwise_or, keeps, "biu"),
    Binary("bitwise_right_shift", np.right_shift, keeps, "iu"),
    Binary("bitwise_xor", np.bitwise_xor, keeps, "biu"),
    Binary("div", np.true_divide, floats),
    Binary("eq", np.equal, compares),
    Binary("floor_divide", _divides(np.floor_divide), keeps, "iuf"),
    Binary("fmod", _divides(np.fmod), stays, "iuf"),
    Binary("ge", np.greater_equal, compares, "biuf"),
    Binary("gt", np.greater, compares, "biuf"),
    Binary("le", np.less_equal, compares, "biuf"),
    Binary("logaddexp", _logaddexp, keeps, "fc"),
    Binary("logical_and", np.logical_and, compares),
    Binary("logical_or", np.logical_or, compares),
    Binary("logical_xor", np.logical_xor, compares),
    Binary("lt", np.less, compares, "biuf"),
    Binary("maximum", _by_keyword(np.maximum), keeps, "biuf"),
    Binary("minimum", _by_keyword(np.minimum), keeps, "biuf"),
    Binary("mul", np.multiply),
    Binary("ne", np.not_equal, compares),
    _Power("pow", _power, stays, "iufc"),
    Binary("remainder", _divides(np.remainder), stays, "iuf"),
    Binary("sub", np.subtract, keeps, "iufc"),
)

UNARY: dict[str, Unary] = {kernel.name: kernel for kernel in _UNARY}
"""PyTorch's name -> kernel, for functions of one tensor."""

BINARY: dict[str, Binary] = {kernel.name: kernel for kernel in _BINARY}
"""PyTorch's name -> kernel, for functions of two tensors, or a tensor and a number."""


def clamp(x: Array, low: Array | PythonScalar | None, high: Array | PythonScalar | None) -> Array:
    """Limit `x` to [low, high]; where the bounds cross, `high` wins. NaN stays NaN.

    The result has the promoted dtype of all that is given, as `torch.clamp` has it.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = result_type(x, *bounds)
    if dtype.kind == "c":
        raise TypeError(f"clamp is not defined for {dtype}")
    result = x.astype(dtype)
    if low is not None:
        result = BINARY["maximum"](result, cast(low, dtype)[...], result)
    if high is not None:
        result = BINARY["minimum"](result, cast(high, dtype)[...], result)
    return result
