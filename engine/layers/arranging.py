"""Layers that put elements in other places: flip, roll, repeat, tile, repeat_interleave, as_strided."""

from collections.abc import Sequence

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, checked_shape
from engine.layers.view_rules import view_layer
from engine.spec import UNKNOWN, TensorSpec, Unknown


def _distinct(dims: Ints, rank: int) -> tuple[int, ...]:
    places = tuple(axis(dim, rank, "dims") for dim in dims)
    if len(set(places)) != len(places):
        raise ArgumentError("dims", f"got {dims}", "every dimension once")
    return places


@view_layer("torch.flip")
def flip(input: Array, dims: Ints) -> Array:
    """Reverse the order along some dimensions."""
    return np.flip(input, _distinct(dims, input.ndim)) if input.ndim else input


def _infer_roll(input: TensorSpec, shifts: Ints, dims: Ints) -> TensorSpec:
    expected = len(dims) or 1
    if len(shifts) != expected:
        raise ArgumentError("shifts", f"got {shifts}", f"{expected} of them")
    for dim in dims:
        axis(dim, input.rank, "dims")
    return input


@layer("torch.roll", infer=_infer_roll)
def roll(input: Array, shifts: Ints, dims: Ints = ()) -> Array:
    """Shift along some dimensions, or along all as if there were one; what falls off comes in at the front."""
    if not input.size or not input.ndim:
        return input
    if not dims:
        return np.roll(input, shifts[0] % input.size)
    places = [axis(dim, input.ndim, "dims") for dim in dims]
    kept = [shift % input.shape[place] for shift, place in zip(shifts, places, strict=True)]
    return np.roll(input, kept, places)


def _repeated(shape: tuple[int, ...], sizes: Ints, argument: str) -> tuple[int, ...]:
    rank = max(len(shape), len(sizes))
    old, factors = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(sizes)) + sizes
    if any(factor < 0 for factor in factors):
        raise ArgumentError(argument, f"got {sizes}", "no negative size")
    return checked_shape([size * factor for size, factor in zip(old, factors, strict=True)], argument)


def _infer_repeat(input: TensorSpec, sizes: Ints) -> TensorSpec:
    if len(sizes) < input.rank:
        raise ArgumentError("sizes", f"got {sizes}", f"at least {input.rank} of them")
    return input.with_shape(_repeated(input.shape, sizes, "sizes"))


@layer("Tensor.repeat", infer=_infer_repeat)
def repeat(input: Array, sizes: Ints) -> Array:
    """Repeat the whole tensor so many times along each dimension."""
    return np.tile(input, sizes)


def _infer_tile(input: TensorSpec, dims: Ints) -> TensorSpec:
    return input.with_shape(_repeated(input.shape, dims, "dims"))


@layer("torch.tile", infer=_infer_tile)
def tile(input: Array, dims: Ints) -> Array:
    """Repeat the whole tensor so many times along each of the last dimensions."""
    return np.tile(input, dims)


def _infer_repeat_interleave(
    input: TensorSpec, repeats: TensorSpec | int, dim: int | None, output_size: int | None
) -> TensorSpec | Unknown:
    shape = (input.size,) if dim is None else input.shape or (1,)
    place = axis(dim or 0, len(shape))
    if isinstance(repeats, TensorSpec):
        if repeats.dtype.kind != "i" or repeats.rank > 1 or repeats.size not in (1, shape[place]):
            expected = f"one integer, or {shape[place]} in one dimension"
            raise ArgumentError("repeats", f"got {repeats}", expected)
        if output_size is None:
            return UNKNOWN
        total = output_size
    else:
        total = shape[place] * repeats
    return input.with_shape(checked_shape((*shape[:place], total, *shape[place + 1 :]), "repeats"))


@layer("torch.repeat_interleave", infer=_infer_repeat_interleave)
def repeat_interleave(
    input: Array, repeats: Array | int, dim: int | None = None, output_size: int | None = None
) -> Array:
    """Repeat each index along a dimension, or each element of the flattened tensor."""
    counts = np.asarray(repeats)
    if counts.size and counts.min() < 0:
        raise ArgumentError("repeats", "got a negative number", "none")
    source = input.reshape(-1) if dim is None or not input.ndim else input
    place = axis(dim or 0, source.ndim)
    checked_shape((int(counts.sum()) * source.size,) if counts.size > 1 else (), "repeats")
    result = np.repeat(source, counts, place)
    if output_size is not None and result.shape[place] != output_size:
        raise ArgumentError("output_size", f"got {output_size}", f"the sum of repeats, {result.shape[place]}")
    return result


def _infer_as_strided(input: TensorSpec, size: Ints, stride: Ints, storage_offset: int | None) -> TensorSpec:
    if len(size) != len(stride):
        raise ArgumentError("stride", f"got {stride}", f"{len(size)} of them")
    if any(step < 0 for step in stride):
        raise ArgumentError("stride", f"got {stride}", "no negative stride")
    if storage_offset is not None and storage_offset < 0:
        raise ArgumentError("storage_offset", f"got {storage_offset}", "no negative offset")
    return input.with_shape(checked_shape(size))


@layer("torch.as_strided", infer=_infer_as_strided)
def as_strided(input: Array, size: Ints, stride: Ints, storage_offset: int | None = None) -> Array:
    """Look at the memory that the tensor lies in with other sizes and strides, counted in elements."""
    return _strided(input, size, stride, storage_offset)


def _strided(x: Array, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Array:
    """Return the view of the storage of `x` that `torch.as_strided` gives.

    Args:
        x: array of any shape; only where its memory lies matters.
        size: shape of the view.
        stride: distance between neighbours along each dimension, in elements, none of them negative.
        offset: offset of the first element, in elements from the start of the storage; None starts where `x` does.

    Raises:
        ArgumentError: the view would reach outside the storage.
    """
    memory = _storage(x)
    first = (_address(x) - _address(memory)) // x.itemsize if offset is None else offset
    if 0 in size:
        return np.empty(size, x.dtype)
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if last >= memory.size:
        raise ArgumentError(
            "size", f"reaches element {last}", f"at most {memory.size - 1}, the last there is"
        )
    strides = [step * x.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(memory[first:], size, strides, writeable=False)


def _storage(x: Array) -> Array:
    """Return the memory that `x` is a view of, as a vector in the order in which it lies."""
    owner = x
    while isinstance(owner.base, np.ndarray) and owner.base.dtype == x.dtype:
        owner = owner.base
    return owner.ravel("K")


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])
