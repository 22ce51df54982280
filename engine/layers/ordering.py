"""Sorting layers and order statistics: sort, median, mode, cummax, quantile and similar.

The exporter knows none of them: they come under their ATen names, with their arguments as operands in ATen's order.
Equal values keep their order; where PyTorch does not specify which of several equal ones an index names, it is the
first.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.binding.arguments import Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import ordering as kernels
from engine.kernels.axes import axis
from engine.kernels.promotion import INT64
from engine.layers.checks import check_kind, keeps
from engine.spec import TensorSpec


def _order(operands: tuple[Any, ...]) -> tuple[int, bool]:
    """Read `[stable,] dim, descending` behind the tensor, as ATen's two overloads have them."""
    if not operands or not isinstance(operands[0], np.ndarray | TensorSpec):
        raise ArgumentError("inputs.0", f"got {operands[:1]}", "a tensor")
    given = operands[2:] if len(operands) == 4 else operands[1:]
    dim, descending = given if len(given) == 2 else (None, None)
    if not isinstance(dim, int) or isinstance(dim, bool) or not isinstance(descending, bool):
        raise ArgumentError("inputs", f"got {operands[1:]}", "a dimension and a bool, after a bool or not")
    return dim, descending


def _infer_sort(*operands: Any) -> tuple[TensorSpec, TensorSpec]:
    dim, _ = _order(operands)
    values = operands[0]
    check_kind("inputs.0", values, "biuf")
    axis(dim, values.rank)
    return values, TensorSpec(values.shape, INT64)


@layer("aten::sort", infer=_infer_sort)
def sort(*operands: Any) -> tuple[Array, Array]:
    """Put the values along a dimension in order: `input, [stable,] dim, descending`; gives values and indices."""
    dim, descending = _order(operands)
    values = operands[0]
    if not values.ndim:
        return values, np.zeros((), np.int64)
    place = axis(dim, values.ndim)
    return kernels.ordered(values, values.shape[place], place, descending=descending)


def _infer_argsort(*operands: Any) -> TensorSpec:
    return _infer_sort(*operands)[1]


@layer("aten::argsort", infer=_infer_argsort)
def argsort(*operands: Any) -> Array:
    """Find the indices that put the values along a dimension in order: `input, [stable,] dim, descending`."""
    return sort(*operands)[1]


@layer("aten::msort", infer=keeps("biuf"))
def msort(input: Array) -> Array:
    """Put the values along the first dimension in order."""
    return sort(input, 0, False)[0]


def _reduced(input: TensorSpec, dim: int, keepdim: bool, kinds: str = "iuf") -> tuple[TensorSpec, TensorSpec]:
    """Return the specs of values and indices that reduce one dimension."""
    check_kind("input", input, kinds)
    place = axis(dim, input.rank)
    if not input.shape:
        return input, TensorSpec((), INT64)
    if not input.shape[place]:
        raise ArgumentError("input", f"got shape {input.shape}", "something to choose from")
    kept = (1,) if keepdim else ()
    shape = (*input.shape[:place], *kept, *input.shape[place + 1 :])
    return input.with_shape(shape), TensorSpec(shape, INT64)


def _reduce(
    choose: Callable[[Array, int], tuple[Array, Array]], input: Array, dim: int, keepdim: bool
) -> tuple[Array, Array]:
    """Choose one value of each line along a dimension, and its index."""
    if not input.ndim:
        return input, np.zeros((), np.int64)
    place = axis(dim, input.ndim)
    values, indices = choose(input, place)
    return (values, indices) if keepdim else (values.squeeze(place), indices.squeeze(place))


def _infer_median(
    input: TensorSpec, dim: int | None, keepdim: bool
) -> TensorSpec | tuple[TensorSpec, TensorSpec]:
    if dim is None:
        check_kind("input", input, "iuf")
        return input.with_shape(())
    return _reduced(input, dim, keepdim)


@layer("aten::median", infer=_infer_median)
def median(input: Array, dim: int | None = None, keepdim: bool = False) -> Array | tuple[Array, Array]:
    """Take the lower median of all values, or with its index along a dimension; NaN where there is one."""
    return _median(input, dim, keepdim, skip_nan=False)


@layer("aten::nanmedian", infer=_infer_median)
def nanmedian(input: Array, dim: int | None = None, keepdim: bool = False) -> Array | tuple[Array, Array]:
    """Take the lower median of the values that are not NaN, of all or with its index along a dimension."""
    return _median(input, dim, keepdim, skip_nan=True)


def _median(input: Array, dim: int | None, keepdim: bool, *, skip_nan: bool) -> Array | tuple[Array, Array]:
    if dim is not None:
        return _reduce(lambda x, place: kernels.median(x, place, skip_nan=skip_nan), input, dim, keepdim)
    if not input.size:
        return np.asarray(np.nan if input.dtype.kind == "f" else np.iinfo(input.dtype).min, input.dtype)
    return kernels.median(input.reshape(-1), 0, skip_nan=skip_nan)[0].reshape(())


def _infer_mode(input: TensorSpec, dim: int, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    return _reduced(input, dim, keepdim, "biuf")


@layer("aten::mode", infer=_infer_mode)
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """Take the most frequent value along a dimension, the smallest of several, and its last index."""
    return _reduce(kernels.mode, input, dim, keepdim)


def _infer_kthvalue(input: TensorSpec, k: int, dim: int, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    result = _reduced(input, dim, keepdim)
    available = input.shape[axis(dim, input.rank)] if input.shape else 1
    if not 1 <= k <= available:
        raise ArgumentError("k", f"got {k}", f"from 1 to {available}")
    return result


@layer("aten::kthvalue", infer=_infer_kthvalue)
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """Take the `k`-th smallest value along a dimension, and its index; NaN counts as the largest."""
    return _reduce(lambda x, place: kernels.nth(x, k - 1, place), input, dim, keepdim)


def _infer_running(input: TensorSpec, dim: int) -> tuple[TensorSpec, TensorSpec]:
    check_kind("input", input, "biuf")
    axis(dim, input.rank)
    return input, TensorSpec(input.shape, INT64)


@layer("aten::cummax", infer=_infer_running)
def cummax(input: Array, dim: int) -> tuple[Array, Array]:
    """Cumulative maximum along a dimension, and the last index that has it."""
    return _running(input, dim, largest=True)


@layer("aten::cummin", infer=_infer_running)
def cummin(input: Array, dim: int) -> tuple[Array, Array]:
    """Cumulative minimum along a dimension, and the last index that has it."""
    return _running(input, dim, largest=False)


def _running(input: Array, dim: int, *, largest: bool) -> tuple[Array, Array]:
    if not input.ndim:
        return input, np.zeros((), np.int64)
    return kernels.running(input, axis(dim, input.ndim), largest=largest)


_INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


def _infer_quantile(
    input: TensorSpec, q: TensorSpec | float, dim: int | None, keepdim: bool, interpolation: str
) -> TensorSpec:
    check_kind("input", input, "f")
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError("interpolation", f"got {interpolation!r}", " or ".join(_INTERPOLATIONS))
    if isinstance(q, TensorSpec) and (q.rank > 1 or q.dtype != input.dtype):
        raise ArgumentError("q", f"got {q}", f"at most 1 dimension, in {input.dtype}")
    if not isinstance(q, TensorSpec) and not 0 <= q <= 1:
        raise ArgumentError("q", f"got {q}", "from 0 to 1")
    if dim is None:
        rest: tuple[int, ...] = (1,) * input.rank if keepdim else ()
    else:
        rest = _reduced(input, dim, keepdim)[0].shape
    if not input.size:
        raise ArgumentError("input", f"got shape {input.shape}", "something to choose from")
    return input.with_shape((*(q.shape if isinstance(q, TensorSpec) else ()), *rest))


@layer("aten::quantile", infer=_infer_quantile)
def quantile(
    input: Array, q: Operand, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Array:
    """Take quantiles of all values or along a dimension; a tensor of them gives a first dimension of its own."""
    return _quantile(input, q, dim, keepdim, interpolation, skip_nan=False)


@layer("aten::nanquantile", infer=_infer_quantile)
def nanquantile(
    input: Array, q: Operand, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Array:
    """Take quantiles of the values that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(
    input: Array, q: Operand, dim: int | None, keepdim: bool, interpolation: str, *, skip_nan: bool
) -> Array:
    asked = np.asarray(q, input.dtype)
    if not np.all((asked >= 0) & (asked <= 1)):
        raise ArgumentError("q", f"got {asked}", "from 0 to 1")
    x = input.reshape(-1) if dim is None else np.atleast_1d(input)
    place = axis(0 if dim is None else dim, x.ndim)
    result = kernels.quantiles(x, asked.reshape(-1), place, interpolation, skip_nan=skip_nan)
    if keepdim:
        shape = (
            (1,) * input.ndim
            if dim is None
            else tuple(1 if at == place else size for at, size in enumerate(input.shape))
        )
        result = result.reshape(len(result), *shape)
    return result if asked.ndim else np.asarray(result[0])


def _infer_aminmax(input: TensorSpec, dim: int | None, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    if dim is None:
        check_kind("input", input, "biuf")
        values = input.with_shape((1,) * input.rank if keepdim else ())
    else:
        values = _reduced(input, dim, keepdim, "biuf")[0]
    if not input.size:
        raise ArgumentError("input", f"got shape {input.shape}", "something to choose from")
    return values, values


@layer("aten::aminmax", infer=_infer_aminmax)
def aminmax(input: Array, dim: int | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    """Take the smallest and the largest value, of all or along a dimension; NaN where there is one."""
    place = None if dim is None or not input.ndim else axis(dim, input.ndim)
    return np.asarray(input.min(place, keepdims=keepdim)), np.asarray(input.max(place, keepdims=keepdim))


def _infer_diff(
    input: TensorSpec, n: int, dim: int, prepend: TensorSpec | None, append: TensorSpec | None
) -> TensorSpec:
    if not input.shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    if n < 0:
        raise ArgumentError("n", f"got {n}", "0 or more")
    place = axis(dim, input.rank)
    for name, other in (("prepend", prepend), ("append", append)):
        if other is not None and (other.rank != input.rank or other.dtype != input.dtype):
            raise ArgumentError(name, f"got {other}", f"{input.rank} dimensions, in {input.dtype}")
    size = sum(spec.shape[place] for spec in (prepend, input, append) if spec is not None)
    return input.with_shape((*input.shape[:place], max(size - n, 0), *input.shape[place + 1 :]))


@layer("aten::diff", infer=_infer_diff)
def diff(
    input: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Subtract each element along a dimension from the next, `n` times; of bools, whether they differ."""
    place = axis(dim, input.ndim)
    line = np.concatenate([part for part in (prepend, input, append) if part is not None], place)
    for _ in range(min(n, line.shape[place])):
        line = np.diff(line, axis=place)
    return line
