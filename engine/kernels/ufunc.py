"""Base of elementwise functions: promotion, casts, broadcasting, output array.

A kernel takes arrays (arrays without dimensions included) and at most all but one Python number, and returns a new
array; it may overwrite an argument only on the caller's request. Its errors are plain Python's, for the caller to
reword: TypeError for a dtype that PyTorch does not compute either, ValueError for shapes that do not broadcast,
    ArithmeticError for an integer division by zero.

Kernels set no `np.errstate`: it costs as much as a small addition. Who runs them ignores, once per run, what floating
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
    PythonScalar,
    TensorLike,
    computing_dtype,
    floating,
    result_type,
)

ArrayFunction: TypeAlias = Callable[..., Any]
"""`compute(*arrays, out)`: `out` is None or an array for the result, which may be one of the arguments.

A number among them is a numpy scalar, or behind a float array a Python number: never an array without dimensions.
"""


class UfuncPlan(NamedTuple):
    """How a kernel runs for given dtypes: cast to `computed`, get `produced`, cast to `result`."""

    computed: Dtype
    produced: Dtype
    result: Dtype

    def finish(self, produced: Any) -> Array:
        """Give what the function produced its dtype, and an array's type where numpy returned a scalar."""
        array: Array = produced if isinstance(produced, np.ndarray) else np.asarray(produced)
        return array if self.produced is self.result else array.astype(self.result)


DtypeRule: TypeAlias = Callable[[Dtype], UfuncPlan]
"""From the promoted dtype of the arguments to the plan."""


def keeps(dtype: Dtype) -> UfuncPlan:
    """The result has the promoted dtype."""
    computed = computing_dtype(dtype)
    return UfuncPlan(computed, computed, dtype)


def stays(dtype: Dtype) -> UfuncPlan:
    """The result has the promoted dtype, and float16 is not widened: a number beside it is rounded to float16."""
    return UfuncPlan(dtype, dtype, dtype)


def floats(dtype: Dtype) -> UfuncPlan:
    """The result is float or complex: integers and bools become float32."""
    return keeps(floating(dtype))


def compares(dtype: Dtype) -> UfuncPlan:
    """The result is bool."""
    return UfuncPlan(dtype, BOOL, BOOL)


def takes_real(dtype: Dtype) -> UfuncPlan:
    """The result of a complex argument is a float of half its size."""
    if dtype.kind != "c":
        return keeps(dtype)
    part = np.dtype(f"f{dtype.itemsize // 2}")
    return UfuncPlan(dtype, part, part)


def counts_bool(dtype: Dtype) -> UfuncPlan:
    """The result has the promoted dtype, but bools count as int64."""
    return keeps(INT64 if dtype.kind == "b" else dtype)


class UfuncKernel:
    """Base of unary and binary kernels: from the promoted dtype to a plan.

    Attributes:
        name: PyTorch's name of the function.
    """

    def __init__(
        self, name: str, compute: ArrayFunction, rule: DtypeRule = keeps, kinds: str = "biufc"
    ) -> None:
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
        self._plans: dict[Dtype, UfuncPlan] = {}

    def plan(self, promoted: Dtype) -> UfuncPlan:
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

    def result_dtype(self, *arguments: TensorLike | PythonScalar) -> Dtype:
        """Return the dtype of the result for these arguments (arrays or specs, and numbers)."""
        return self.plan(result_type(*arguments)).result


class Unary(UfuncKernel):
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


class Binary(UfuncKernel):
    """A function of two arrays that broadcast, or of an array and a number."""

    def __call__(
        self, a: Array | PythonScalar, b: Array | PythonScalar, scratch: Array | None = None
    ) -> Array:
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
        plan, x, y = self.prepare(a, b)
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

    def prepare(self, a: Array | PythonScalar, b: Array | PythonScalar) -> tuple[UfuncPlan, Any, Any]:
        """Return the plan and the operands it computes with."""
        if isinstance(a, np.ndarray) and a.dtype in _STEADY:
            # where nothing is to be cast: two tensors of one dtype, or a tensor and a number that cannot raise it
            same = b.dtype is a.dtype if isinstance(b, np.ndarray) else type(b) in (int, float) and a.ndim
            if same:
                return self._plans.get(a.dtype) or self.plan(a.dtype), a, b
        plan = self.plan(_promoted(_kind(a), _kind(b)))
        return plan, cast(a, plan.computed), cast(b, plan.computed)

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
        except ValueError as error:
            problem = f"{self.name} cannot broadcast {' with '.join(map(str, shapes))}"
            if "too large" in str(error):  # the shapes fit, but numpy cannot count the elements
                problem += ": the result has too many elements"
            raise ValueError(problem) from None


_STEADY = frozenset((FLOAT32, FLOAT64))
"""Dtypes that every kernel computes in as they are, and that numpy's ufuncs keep when given a Python number."""

_Kind: TypeAlias = tuple[Dtype, bool] | type


def _kind(operand: Array | PythonScalar) -> _Kind:
    """Return all of an operand that promotion depends on: its dtype and whether it has dimensions, or its type."""
    return (operand.dtype, operand.ndim > 0) if isinstance(operand, np.ndarray) else type(operand)


@cache
def _promoted(*kinds: _Kind) -> Dtype:
    operands: list[Any] = []
    for kind in kinds:
        if isinstance(kind, tuple):
            operands.append(np.empty((0,) if kind[1] else (), kind[0]))
        elif kind in (bool, int, float, complex):
            operands.append(kind(0))
        else:
            raise TypeError(f"expected a tensor or a number, got {kind.__name__}")
    return result_type(*operands)


def cast(operand: Array | PythonScalar, dtype: Dtype) -> Array:
    """Return the operand in `dtype`, a number as a numpy scalar."""
    if isinstance(operand, np.ndarray):
        return operand if operand.dtype is dtype else operand.astype(dtype)
    if dtype.kind in "fc":
        return dtype.type(operand)  # type: ignore[no-any-return]  # a numpy scalar behaves as an array here
    # Through int64, so that a number too large for a small integer type wraps as in PyTorch.
    return np.asarray(operand).astype(dtype)[()]
