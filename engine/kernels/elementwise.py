"""Elementwise functions with PyTorch's semantics: dtypes, rounding, integer division, special values.

A kernel takes arrays (arrays without dimensions included) and at most all but one Python number, and returns a new
array; only where the caller says so may it write over an argument. Its errors are plain Python's, for the caller to
put into its own words: TypeError for a dtype that PyTorch does not compute either, ValueError for shapes that do not
broadcast, ArithmeticError for an integer division by zero.

Kernels set no `np.errstate`: it costs as much as a small addition. Who runs them, once per run, ignores what floating
point signals (`with np.errstate(all="ignore")`).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from engine.dtypes import Array
from engine.kernels.promotion import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Dtype,
    Number,
    Tensor,
    computing_dtype,
    floating,
    result_type,
)
from engine.kernels.special import erf, lgamma

Compute: TypeAlias = Callable[..., Any]
"""`compute(*arrays, out)`: `out` is None or an array for the result, which may be one of the arguments.

A number among them is a numpy scalar, or behind a float array a Python number: never an array without dimensions.
"""


class Plan(NamedTuple):
    """How a kernel runs for given dtypes: cast to `computed`, get `produced`, cast to `result`."""

    computed: Dtype
    produced: Dtype
    result: Dtype

    def finish(self, produced: Any) -> Array:
        """Give what the function produced its dtype, and an array's type where numpy returned a scalar."""
        array: Array = produced if isinstance(produced, np.ndarray) else np.asarray(produced)
        return array if self.produced is self.result else array.astype(self.result)


Rule: TypeAlias = Callable[[Dtype], Plan]
"""From the promoted dtype of the arguments to the plan."""


def keeps(dtype: Dtype) -> Plan:
    """The result has the promoted dtype."""
    computed = computing_dtype(dtype)
    return Plan(computed, computed, dtype)


def floats(dtype: Dtype) -> Plan:
    """The result is float or complex: integers and bools become float32."""
    return keeps(floating(dtype))


def compares(dtype: Dtype) -> Plan:
    """The result is bool."""
    return Plan(dtype, BOOL, BOOL)


def takes_real(dtype: Dtype) -> Plan:
    """The result of a complex argument is a float of half its size."""
    if dtype.kind != "c":
        return keeps(dtype)
    part = np.dtype(f"f{dtype.itemsize // 2}")
    return Plan(dtype, part, part)


def counts_bool(dtype: Dtype) -> Plan:
    """The result has the promoted dtype, but bools count as int64."""
    return keeps(INT64 if dtype.kind == "b" else dtype)


class Kernel:
    """What unary and binary kernels share: from the promoted dtype to a plan.

    Attributes:
        name: PyTorch's name of the function.
    """

    def __init__(self, name: str, compute: Compute, rule: Rule = keeps, kinds: str = "biufc") -> None:
        """Describe a function.

        Args:
            name: PyTorch's name of the function.
            compute: the function over arrays of the plan's `computed` dtype.
            rule: how its dtypes follow from the promoted one.
            kinds: the numpy kinds of promoted dtype it is defined for.
        """
        self.name = name
        self._compute = compute
        self._rule = rule
        self._kinds = kinds
        self._plans: dict[Dtype, Plan] = {}

    def plan(self, promoted: Dtype) -> Plan:
        """Return the plan for arguments that promote to `promoted`.

        Raises:
            TypeError: PyTorch does not define the function for this dtype.
        """
        plan = self._plans.get(promoted)
        if plan is None:
            if promoted.kind not in self._kinds:
                raise TypeError(f"{self.name} is not defined for {promoted}")
            plan = self._plans[promoted] = self._rule(promoted)
        return plan

    def result_dtype(self, *arguments: Tensor | Number) -> Dtype:
        """Return the dtype of the result for these arguments (arrays or specs, and numbers)."""
        return self.plan(result_type(*arguments)).result


class Unary(Kernel):
    """A function of one array."""

    def __call__(self, x: Array, scratch: Array | None = None) -> Array:
        """Apply the function.

        Args:
            x: array of any shape.
            scratch: an array, possibly `x`, that the result may be written to if it fits.
        """
        plan = self._plans.get(x.dtype) or self.plan(x.dtype)
        if x.dtype != plan.computed:
            x = scratch = x.astype(plan.computed)
        if scratch is not None and (scratch.dtype != plan.produced or scratch.shape != x.shape):
            scratch = None
        return plan.finish(self._compute(x, scratch))


class Binary(Kernel):
    """A function of two arrays that broadcast, or of an array and a number."""

    def __call__(self, a: Array | Number, b: Array | Number, scratch: Array | None = None) -> Array:
        """Apply the function.

        Args:
            a: array, or a number if `b` is an array.
            b: array, or a number if `a` is an array.
            scratch: an array, possibly one of the two, that the result may be written to if it fits.

        Raises:
            TypeError: PyTorch does not define the function for these dtypes.
            ValueError: the shapes do not broadcast.
            ArithmeticError: an integer is to be divided by zero, or raised to a negative number.
        """
        plan, x, y = self._prepare(a, b)
        if scratch is not None and not (
            scratch.dtype == plan.produced and scratch.shape == self._shape(x, y)
        ):
            scratch = None
        try:
            result = self._compute(x, y, scratch)
        except ValueError:
            self._shape(x, y)
            raise
        return plan.finish(result)

    def _prepare(self, a: Array | Number, b: Array | Number) -> tuple[Plan, Any, Any]:
        """Return the plan and the operands it computes with."""
        if isinstance(a, np.ndarray) and a.dtype in _STEADY:
            # where nothing is to be cast: two tensors of one dtype, or a tensor and a number that cannot raise it
            same = b.dtype is a.dtype if isinstance(b, np.ndarray) else type(b) is not complex and a.ndim
            if same:
                return self._plans.get(a.dtype) or self.plan(a.dtype), a, b
        plan = self.plan(_promoted(_kind(a), _kind(b)))
        return plan, _cast(a, plan.computed), _cast(b, plan.computed)

    def _shape(self, x: Any, y: Any) -> tuple[int, ...]:
        """Return the shape that two operands broadcast to."""
        one, other = getattr(x, "shape", ()), getattr(y, "shape", ())
        return one if one == other or not other else self.broadcast(one, other)

    def broadcast(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that `shapes` broadcast to.

        Raises:
            ValueError: they do not.
        """
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            raise ValueError(f"{self.name} cannot broadcast {' with '.join(map(str, shapes))}") from None


_STEADY = frozenset((FLOAT32, FLOAT64))
"""Dtypes that every kernel computes in as they are, and that numpy's ufuncs keep when given a Python number."""

_Kind: TypeAlias = tuple[Dtype, bool] | type


def _kind(operand: Array | Number) -> _Kind:
    """Return all of an operand that promotion depends on: its dtype and whether it has dimensions, or its type."""
    return (operand.dtype, operand.ndim > 0) if isinstance(operand, np.ndarray) else type(operand)


@cache
def _promoted(*kinds: _Kind) -> Dtype:
    return result_type(
        *(np.empty((0,) * kind[1], kind[0]) if isinstance(kind, tuple) else kind(0) for kind in kinds)
    )


def _cast(operand: Array | Number, dtype: Dtype) -> Array:
    """Return the operand in `dtype`, a number as a numpy scalar."""
    if isinstance(operand, np.ndarray):
        return operand if operand.dtype is dtype else operand.astype(dtype)
    if dtype.kind in "fc":
        return dtype.type(operand)  # type: ignore[no-any-return]  # a numpy scalar behaves as an array here
    # Through int64, so that a number too large for a small integer type wraps as in PyTorch.
    return np.asarray(operand).astype(dtype)[()]


def _copy(x: Array, out: Array | None) -> Array:
    return x.copy() if out is None else out


def _rounds(ufunc: np.ufunc) -> Compute:
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


def _divides(ufunc: np.ufunc) -> Compute:
    """Divide; integers refuse a zero divisor as PyTorch does."""

    def compute(a: Array, b: Array, out: Array | None) -> Any:
        if a.dtype.kind in "iu" and not np.all(b):
            raise ZeroDivisionError("integer division by zero")
        return ufunc(a, b, out)

    return compute


_POWERS: dict[Any, Callable[[Array, Array | None], Any]] = {
    -2.0: lambda x, out: np.reciprocal(np.square(x, out), out),
    -1.0: np.reciprocal,
    -0.5: _rsqrt,
    0.5: np.sqrt,
    2.0: np.square,
    3.0: lambda x, out: np.multiply(np.square(x), x, out),
}
"""Exponents that PyTorch, given them as a number, does not raise to by logarithms: pow(-inf, 0.5) is NaN."""


def _power(base: Any, exponent: Any, out: Array | None) -> Any:
    if base.dtype.kind in "iu":
        return _integer_power(base, exponent, out)
    if isinstance(exponent, np.generic | int | float):
        shortcut = _POWERS.get(exponent)
        if shortcut is not None:
            return shortcut(base, out)
    return np.power(base, exponent, out)


def _integer_power(base: Any, exponent: Any, out: Array | None) -> Any:
    """Raise integers, wrapping around; of the negative powers of an integer only those of 1 and -1 are not 0."""
    is_number = isinstance(exponent, np.generic)
    negative = exponent < 0
    if not np.any(negative):
        return np.power(base, exponent, out)
    if is_number:
        raise ArithmeticError("integers have no negative powers")
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
    Binary("fmod", _divides(np.fmod), keeps, "iuf"),
    Binary("ge", np.greater_equal, compares, "biuf"),
    Binary("gt", np.greater, compares, "biuf"),
    Binary("le", np.less_equal, compares, "biuf"),
    Binary("logaddexp", _logaddexp, keeps, "fc"),
    Binary("logical_and", np.logical_and, compares),
    Binary("logical_or", np.logical_or, compares),
    Binary("logical_xor", np.logical_xor, compares),
    Binary("lt", np.less, compares, "biuf"),
    Binary("maximum", np.maximum, keeps, "biuf"),
    Binary("minimum", np.minimum, keeps, "biuf"),
    Binary("mul", np.multiply),
    Binary("ne", np.not_equal, compares),
    Binary("pow", _power, keeps, "iufc"),
    Binary("remainder", _divides(np.remainder), keeps, "iuf"),
    Binary("sub", np.subtract, keeps, "iufc"),
)

UNARY: dict[str, Unary] = {kernel.name: kernel for kernel in _UNARY}
"""PyTorch's name -> kernel, for functions of one tensor."""

BINARY: dict[str, Binary] = {kernel.name: kernel for kernel in _BINARY}
"""PyTorch's name -> kernel, for functions of two tensors, or a tensor and a number."""


def clamp(x: Array, low: Array | Number | None, high: Array | Number | None) -> Array:
    """Limit `x` to [low, high]; where the bounds cross, `high` wins. NaN stays NaN.

    The result has the promoted dtype of all that is given, as `torch.clamp` has it.
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = result_type(x, *bounds)
    if dtype.kind == "c":
        raise TypeError(f"clamp is not defined for {dtype}")
    result = x.astype(dtype)
    if low is not None:
        result = BINARY["maximum"](result, _cast(low, dtype)[...], result)
    if high is not None:
        result = BINARY["minimum"](result, _cast(high, dtype)[...], result)
    return result
