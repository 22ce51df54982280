"""Layers that write values at indices: scatter, scatter_reduce, index_add, put, masked_scatter and similar.

The exporter knows none of these: they come under their ATen names, with their arguments as operands in ATen's order.
Where several values go to one place, the last one stays, as in PyTorch on a CPU.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.binding.arguments import Number, Operand
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, broadcast
from engine.kernels.casting import cast
from engine.layers.checks import check_fits, check_index, check_kind, check_range
from engine.spec import TensorSpec

_IndexKey = tuple[Any, ...]
"""An index of numpy."""
_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}
_REDUCTIONS = tuple(_UFUNCS)
"""Names of the ways to combine values, as PyTorch's scatter_reduce and index_reduce take them."""

_NAMES = {"add": "sum", "multiply": "prod"}
"""Names of reductions in the older scatter."""


def _check_source(input: TensorSpec, src: TensorSpec, name: str) -> None:
    if src.dtype != input.dtype:
        raise ArgumentError(name, f"got dtype {src.dtype}", f"that of input, {input.dtype}")


def _check_reduction(reduce: str, known: tuple[str, ...]) -> None:
    if reduce not in known:
        raise ArgumentError("reduce", f"got {reduce!r}", " or ".join(known))


def _infer_scatter(
    input: TensorSpec, dim: int, index: TensorSpec, src: TensorSpec | Number, reduce: str | None
) -> TensorSpec:
    if reduce is not None:
        _check_reduction(reduce, tuple(_NAMES))
    check_index(index)
    place = axis(dim, input.rank)
    if index.size:
        flat = TensorSpec(index.shape or (1,), index.dtype)
        check_fits(flat, input.shape or (1,), place, "input")
        if isinstance(src, TensorSpec):
            check_fits(flat, src.shape or (1,), None, "src")
    if isinstance(src, TensorSpec):
        _check_source(input, src, "src")
    return input


@layer("aten::scatter", infer=_infer_scatter)
def scatter(input: Array, dim: int, index: Array, src: Operand | bool, reduce: str | None = None) -> Array:
    """Give a copy of `input` with each element of `src`, or one number, at `index` along `dim`.

    With `reduce` it is added to what is there or multiplied with it.
    """
    return _scattered(input, dim, index, src, None if reduce is None else _NAMES[reduce])


def _scattered(
    input: Array, dim: int, index: Array, src: Operand, reduction: str | None, include_self: bool = True
) -> Array:
    """Return a copy of `input` with the values of `src` put at `index`, or reduced with the existing values."""
    target, places = np.atleast_1d(input), np.atleast_1d(index)
    place = axis(dim, target.ndim)
    if not index.size:
        return input
    check_range(index, target.shape[place])
    values = _values(src, places, input)
    if reduction is not None:
        result = _combine(target, _along(places, place), values, reduction, include_self=include_self)
    else:
        result = target.copy()
        result[_along(places, place)] = values
    return result.reshape(input.shape)


def _values(src: Operand, places: Array, input: Array) -> Array:
    """Return what goes to each of the places."""
    if isinstance(src, np.ndarray):
        return np.asarray(np.atleast_1d(src)[tuple(map(slice, places.shape))])
    return np.broadcast_to(cast(np.asarray(src), input.dtype), places.shape)


def _infer_scatter_reduce(
    input: TensorSpec, dim: int, index: TensorSpec, src: TensorSpec, reduce: str
) -> TensorSpec:
    _check_reduction(reduce, _REDUCTIONS)
    return _infer_scatter(input, dim, index, src, None)


@layer("aten::scatter_reduce", infer=_infer_scatter_reduce)
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> Array:
    """Give a copy of `input` with the sum, product, mean, maximum or minimum of what `index` sends to each place."""
    return _scattered(input, dim, index, src, reduce, include_self)


def _infer_put_slices(input: TensorSpec, dim: int, index: TensorSpec, source: TensorSpec) -> TensorSpec:
    check_index(index)
    if index.rank > 1:
        raise ArgumentError("index", f"got {index.rank} dimensions", "at most 1")
    place = axis(dim, input.rank)
    _check_source(input, source, "source")
    shape = (*input.shape[:place], index.size, *input.shape[place + 1 :]) if input.shape else (1,)
    if (source.shape or (1,)) != shape:
        raise ArgumentError("source", f"got shape {source.shape}", f"{shape}")
    return input


def _placed(input: Array, dim: int, index: Array, source: Array) -> tuple[Array, tuple[Any, ...], Array]:
    """Return the target, the key of its slices, and what goes there."""
    target = np.atleast_1d(input)
    place = axis(dim, target.ndim)
    check_range(index, target.shape[place])
    return target, _slices(index.reshape(-1), place), np.atleast_1d(source)


def _infer_index_add(
    input: TensorSpec, dim: int, index: TensorSpec, source: TensorSpec, alpha: Number
) -> TensorSpec:
    if isinstance(alpha, float) and input.dtype.kind in "iu":
        raise ArgumentError("alpha", f"is {alpha}", "an int, as the tensors are of integers")
    return _infer_put_slices(input, dim, index, source)


@layer("aten::index_add", infer=_infer_index_add)
def index_add(input: Array, dim: int, index: Array, source: Array, alpha: Number = 1) -> Array:
    """Give a copy of `input` with `source` times `alpha` added to the slices along `dim` that `index` names."""
    target, key, values = _placed(input, dim, index, source)
    scaled = values if alpha == 1 else values * cast(np.asarray(alpha), input.dtype)
    return _combine(target, key, scaled, "sum", include_self=True).reshape(input.shape)


@layer("aten::index_copy", infer=_infer_put_slices)
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """Give a copy of `input` whose slices along `dim`, named by `index`, are those of `source`."""
    target, key, values = _placed(input, dim, index, source)
    result = target.copy()
    result[key] = values
    return result.reshape(input.shape)


def _infer_index_reduce(
    input: TensorSpec, dim: int, index: TensorSpec, source: TensorSpec, reduce: str
) -> TensorSpec:
    _check_reduction(reduce, ("prod", "mean", "amax", "amin"))
    return _infer_put_slices(input, dim, index, source)


@layer("aten::index_reduce", infer=_infer_index_reduce)
def index_reduce(
    input: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    """Give a copy of `input` whose slices along `dim` are reduced with those that `index` sends to them."""
    target, key, values = _placed(input, dim, index, source)
    return _combine(target, key, values, reduce, include_self=include_self).reshape(input.shape)


def _infer_index_fill(
    input: TensorSpec, dim: int, index: TensorSpec, value: TensorSpec | Number
) -> TensorSpec:
    check_index(index)
    axis(dim, input.rank)
    if index.rank > 1 or (isinstance(value, TensorSpec) and value.shape):
        raise ArgumentError("index", f"got {index}, value {value}", "at most 1 dimension, and one value")
    return input


@layer("aten::index_fill", infer=_infer_index_fill)
def index_fill(input: Array, dim: int, index: Array, value: Operand | bool) -> Array:
    """Give a copy of `input` with one value in the slices along `dim` that `index` names, from the back if negative."""
    result = np.atleast_1d(input).copy()
    place = axis(dim, result.ndim)
    counted = _from_front(index.reshape(-1), result.shape[place])
    result[_slices(counted, place)] = cast(np.asarray(value), input.dtype)
    return result.reshape(input.shape)


def _from_front(index: Array, size: int) -> Array:
    """Return indices counted from the front; those from -size to -1 count from the back."""
    if index.size and (index.min() < -size or index.max() >= size):
        expected = f"indices from {-size} to {size - 1}"
        raise ArgumentError("index", f"got from {index.min()} to {index.max()}", expected)
    return np.where(index < 0, index + size, index)


def _infer_put(input: TensorSpec, index: TensorSpec, source: TensorSpec) -> TensorSpec:
    check_index(index)
    _check_source(input, source, "source")
    if source.size != index.size:
        raise ArgumentError("source", f"got {source.size} elements", f"{index.size}, as index has")
    return input


@layer("aten::put", infer=_infer_put)
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Give a copy of `input` with values put, or added, at `index` in the flattened tensor."""
    result = input.reshape(-1).copy()
    places = _from_front(index.reshape(-1), result.size)
    if accumulate:
        np.add.at(result, places, source.reshape(-1))
    else:
        result[places] = source.reshape(-1)
    return result.reshape(input.shape)


def _infer_take(input: TensorSpec, index: TensorSpec) -> TensorSpec:
    check_index(index)
    return input.with_shape(index.shape)


@layer("aten::take", infer=_infer_take)
def take(input: Array, index: Array) -> Array:
    """Pick elements by their place in the flattened tensor."""
    return np.asarray(input.reshape(-1)[_from_front(index, input.size)])


def _infer_take_along_dim(input: TensorSpec, indices: TensorSpec, dim: int | None) -> TensorSpec:
    if indices.dtype != np.int64:
        raise ArgumentError("indices", f"got dtype {indices.dtype}", "int64")
    if dim is None:
        return input.with_shape((indices.size,))
    if indices.rank != input.rank:
        raise ArgumentError("indices", f"got {indices.rank} dimensions", f"{input.rank}, as input has")
    place = axis(dim, input.rank)
    others = [(*shape[:place], 1, *shape[place + 1 :]) for shape in (input.shape, indices.shape)]
    shape = list(broadcast(*others, argument="indices"))
    if shape:
        shape[place] = indices.shape[place]
    return input.with_shape(shape)


@layer("aten::take_along_dim", infer=_infer_take_along_dim)
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """Pick elements along a dimension, all others broadcasting; without one, from the flattened tensor."""
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    source, places = np.atleast_1d(input), np.atleast_1d(indices)
    place = axis(dim, source.ndim)
    check_range(places, source.shape[place])
    shape = _infer_take_along_dim(
        TensorSpec(source.shape, source.dtype), TensorSpec(places.shape, places.dtype), place
    ).shape
    whole = (*shape[:place], source.shape[place], *shape[place + 1 :])
    picked = np.take_along_axis(np.broadcast_to(source, whole), np.broadcast_to(places, shape), place)
    return picked if input.ndim else picked.reshape(())


def _infer_masked_scatter(input: TensorSpec, mask: TensorSpec, source: TensorSpec) -> TensorSpec:
    check_kind("mask", mask, "b")
    _check_source(input, source, "source")
    return input.with_shape(broadcast(input.shape, mask.shape, argument="mask"))


@layer("aten::masked_scatter", infer=_infer_masked_scatter)
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """Give a copy of `input` with the elements of `source`, one after the other, where the mask holds."""
    shape = np.broadcast_shapes(input.shape, mask.shape)
    result, chosen = np.broadcast_to(input, shape).copy(), np.broadcast_to(mask, shape)
    count = np.count_nonzero(chosen)
    if source.size < count:
        raise ArgumentError("source", f"got {source.size} elements", f"at least {count}, as the mask holds")
    result[chosen] = source.reshape(-1)[:count]
    return result


def _along(index: Array, axis: int) -> _IndexKey:
    """Return the key of the elements that `index` names along an axis, at its own places in all others."""
    key: list[Any] = list(np.indices(index.shape, sparse=True))
    key[axis] = index
    return tuple(key)


def _slices(index: Array, axis: int) -> _IndexKey:
    """Return the key of the whole slices that `index`, of one dimension, names along an axis."""
    return (slice(None),) * axis + (index,)


def _combine(target: Array, key: _IndexKey, values: Array, reduction: str, *, include_self: bool) -> Array:
    """Return a copy of `target` in which the elements at `key` are reduced with the values that go there.

    Args:
        target: what is copied.
        key: where the values go; the same place may come up several times.
        values: in the dtype of `target`, in the shape that the key picks.
        reduction: one of `REDUCTIONS`. The mean of integers is rounded down.
        include_self: whether what is in `target` counts as one of the values.
    """
    result = target.copy()
    if not include_self:
        result[key] = _neutral(reduction, target.dtype)
    _UFUNCS[reduction].at(result, key, values)
    if reduction != "mean":
        return result
    counts = np.full(target.shape, int(include_self))
    np.add.at(counts, key, 1)
    divide: Callable[..., Array] = np.floor_divide if target.dtype.kind in "iu" else np.true_divide
    divided: Array = divide(result, np.maximum(counts, 1).astype(target.dtype))
    return divided


def _neutral(reduction: str, dtype: np.dtype[Any]) -> Any:
    """Return what changes no value that it is reduced with."""
    if reduction in ("sum", "mean", "prod"):
        return dtype.type(reduction == "prod")
    if dtype.kind == "f":
        return dtype.type(-np.inf if reduction == "amax" else np.inf)
    if dtype.kind == "b":
        return dtype.type(reduction == "amin")
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if reduction == "amax" else limits.max)
