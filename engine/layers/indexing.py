"""Indexing layers: index, gather, index_put, scatter_add and similar."""

from typing import Any

import numpy as np

from engine.binding.arguments import Indices, Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, broadcast
from engine.kernels.casting import cast
from engine.layers.checks import check_fits, check_index, check_kind, check_range
from engine.spec import UNKNOWN, TensorSpec, Unknown


def _key(indices: tuple[Array | None, ...]) -> tuple[Any, ...]:
    """Return numpy's index: None takes a whole dimension, bytes are masks."""
    return tuple(
        slice(None) if index is None else index.astype(np.bool_) if index.dtype == np.uint8 else index
        for index in indices
    )


def _is_mask(index: TensorSpec) -> bool:
    return index.dtype.kind == "b" or index.dtype == np.uint8


def _check_indices(shape: tuple[int, ...], indices: tuple[TensorSpec | None, ...], argument: str) -> None:
    """Check indices against the dimensions that they index."""
    used = 0
    for index in indices:
        if index is None:
            used += 1
            continue
        if index.dtype.kind not in "biu":
            raise ArgumentError(argument, f"got indices of {index.dtype}", "integers or a mask")
        taken = index.rank if _is_mask(index) else 1
        if _is_mask(index) and index.shape != shape[used : used + taken]:
            expected = f"the dimensions from {used} on of {shape}"
            raise ArgumentError(argument, f"got a mask of shape {index.shape}", expected)
        used += taken
    if used > len(shape):
        raise ArgumentError(argument, f"got indices for {used} dimensions", f"at most {len(shape)}")


def _indexed_shape(
    shape: tuple[int, ...], indices: tuple[TensorSpec | None, ...], argument: str
) -> tuple[int, ...]:
    """Return the shape that integer indices give.

    Where all the indexed dimensions are neighbours, what the indices broadcast to takes their place; otherwise it
    comes first.
    """
    places = [place for place, index in enumerate(indices) if index is not None]
    picked = broadcast(*(index.shape for index in indices if index is not None), argument=argument)
    rest = [size for place, size in enumerate(shape) if place not in places]
    adjacent = bool(places) and places[-1] - places[0] + 1 == len(places)
    before = places[0] if adjacent else 0
    return (*rest[:before], *picked, *rest[before:])


def _specs(indices: tuple[TensorSpec | Array | None, ...]) -> tuple[TensorSpec | None, ...]:
    """Return the specs of indices, some of which may be known already."""
    return tuple(TensorSpec(i.shape, i.dtype) if isinstance(i, np.ndarray) else i for i in indices)


def _infer_index(input: TensorSpec, expr: tuple[TensorSpec | Array | None, ...]) -> TensorSpec | Unknown:
    indices = _specs(expr)
    _check_indices(input.shape, indices, "expr")
    if any(index is not None and _is_mask(index) for index in indices):
        return UNKNOWN
    return input.with_shape(_indexed_shape(input.shape, indices, "expr"))


@layer("Tensor.index", infer=_infer_index)
def index(input: Array, expr: Indices) -> Array:
    """Pick elements by lists of indices or by masks, one for each dimension; None takes a whole dimension."""
    return np.asarray(input[_key(expr)])


def _infer_index_put(
    input: TensorSpec,
    indices: tuple[TensorSpec | Array | None, ...],
    values: TensorSpec | Number | bool | None,
) -> TensorSpec:
    specs = _specs(indices)
    _check_indices(input.shape, specs, "indices")
    if isinstance(values, TensorSpec) and not any(index is not None and _is_mask(index) for index in specs):
        picked = _indexed_shape(input.shape, specs, "indices")
        if broadcast(picked, values.shape, argument="values") != picked:
            raise ArgumentError("values", f"got shape {values.shape}", f"one that broadcasts to {picked}")
    return input


@layer("Tensor.index_put", infer=_infer_index_put)
def index_put(
    input: Array, indices: Indices, values: Array | Number | bool | None = None, accumulate: bool = False
) -> Array:
    """Give a copy of `input` in which the elements that `indices` pick have, or with `accumulate` gain, `values`.

    PNNX writes a value of False as None.
    """
    result = input.copy()
    put = cast(np.asarray(False if values is None else values), input.dtype)
    if accumulate:
        np.add.at(result, _key(indices), put)
    else:
        result[_key(indices)] = put
    return result


def _infer_gather(input: TensorSpec, dim: int, index: TensorSpec) -> TensorSpec:
    check_index(index)
    place = axis(dim, input.rank)
    if index.size:
        check_fits(TensorSpec(index.shape or (1,), index.dtype), input.shape or (1,), place, "input")
    return input.with_shape(index.shape)


@layer("torch.gather", infer=_infer_gather)
def gather(input: Array, dim: int, index: Array) -> Array:
    """Pick, for each element of `index`, the element at its place, with `index` replacing the place along `dim`."""
    source, places = np.atleast_1d(input), np.atleast_1d(index)
    place = axis(dim, source.ndim)
    if not index.size:
        return np.empty(index.shape, input.dtype)
    check_range(index, source.shape[place])
    cut = tuple(slice(None if i == place else size) for i, size in enumerate(places.shape))
    return np.take_along_axis(source[cut], places, place).reshape(index.shape)


def _infer_index_select(input: TensorSpec, dim: int, index: TensorSpec) -> TensorSpec:
    check_index(index)
    if index.rank > 1:
        raise ArgumentError("index", f"got {index.rank} dimensions", "at most 1")
    place = axis(dim, input.rank)
    return input.with_shape(
        (*input.shape[:place], index.size, *input.shape[place + 1 :]) if input.shape else ()
    )


@layer("torch.index_select", infer=_infer_index_select)
def index_select(input: Array, dim: int, index: Array) -> Array:
    """Pick whole slices along a dimension."""
    source = np.atleast_1d(input)
    place = axis(dim, source.ndim)
    check_range(index, source.shape[place])
    picked = np.take(source, index.reshape(-1), place)
    return picked if input.ndim else picked.reshape(())


def _infer_masked_select(input: TensorSpec, mask: TensorSpec) -> Unknown:
    check_kind("mask", mask, "b")
    broadcast(input.shape, mask.shape, argument="mask")
    return UNKNOWN


@layer("torch.masked_select", infer=_infer_masked_select)
def masked_select(input: Array, mask: Array) -> Array:
    """Pick the elements where the mask holds, in one dimension."""
    values, chosen = np.broadcast_arrays(input, mask)
    return np.asarray(values[chosen])


def _infer_scatter_add(input: TensorSpec, dim: int, index: TensorSpec, src: TensorSpec) -> TensorSpec:
    check_index(index)
    place = axis(dim, input.rank)
    if src.dtype != input.dtype:
        raise ArgumentError("src", f"got dtype {src.dtype}", f"that of input, {input.dtype}")
    if index.size:
        flat = TensorSpec(index.shape or (1,), index.dtype)
        check_fits(flat, input.shape or (1,), place, "input")
        check_fits(flat, src.shape or (1,), None, "src")
    return input


@layer("torch.scatter_add", infer=_infer_scatter_add)
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """Give a copy of `input` to which each element of `src` is added at `index` along `dim`."""
    result = input.copy()
    target, places, values = np.atleast_1d(result), np.atleast_1d(index), np.atleast_1d(src)
    place = axis(dim, target.ndim)
    if index.size:
        check_range(index, target.shape[place])
        key: list[Any] = list(np.indices(places.shape, sparse=True))
        key[place] = places
        np.add.at(target, tuple(key), values[tuple(map(slice, places.shape))])
    return result
