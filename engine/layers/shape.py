"""Shape layers: flatten, reshape, permute, squeeze, expand and similar.

All of them give views where numpy can; none of them copies an element that it need not.
"""

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axes, axis, completed_shape, expanded_shape
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec


def _flattened(shape: tuple[int, ...], start_dim: int, end_dim: int) -> tuple[int, ...]:
    if not shape:
        shape = (1,)
    start, end = axis(start_dim, len(shape), "start_dim"), axis(end_dim, len(shape), "end_dim")
    if start > end:
        raise ArgumentError("end_dim", f"got {end_dim}", f"no dimension before start_dim {start_dim}")
    return (*shape[:start], int(np.prod(shape[start : end + 1], dtype=object)), *shape[end + 1 :])


@view_layer("torch.flatten")
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Join the dimensions from `start_dim` to `end_dim`."""
    return input.reshape(_flattened(input.shape, start_dim, end_dim))


def _unflattened(shape: tuple[int, ...], dim: int, sizes: Ints) -> tuple[int, ...]:
    place = axis(dim, len(shape))
    if not shape or not sizes:
        raise ArgumentError("sizes", f"got {sizes}", "sizes for a tensor with dimensions")
    return (*shape[:place], *completed_shape(sizes, shape[place], "sizes"), *shape[place + 1 :])


@view_layer("Tensor.unflatten", "torch.unflatten")
def unflatten(input: Array, dim: int, sizes: Ints) -> Array:
    """Split one dimension into several; one of `sizes` may be -1."""
    return input.reshape(_unflattened(input.shape, dim, sizes))


@view_layer("Tensor.reshape", "Tensor.view")
def reshape(input: Array, shape: Ints) -> Array:
    """Give the elements another shape; one of its sizes may be -1."""
    return input.reshape(completed_shape(shape, input.size))


@view_layer("Tensor.reshape_as", "Tensor.view_as", "aten::view_as")
def reshape_as(input: Array, other: Array) -> Array:
    """Give the elements the shape of `other`."""
    return input.reshape(completed_shape(other.shape, input.size, "other"))


def _order(dims: Ints, rank: int) -> tuple[int, ...]:
    order = tuple(axis(dim, rank, "dims") for dim in dims)
    if sorted(order) != list(range(rank)):
        raise ArgumentError("dims", f"got {dims}", f"every one of {rank} dimensions once")
    return order


@view_layer("Tensor.permute", "torch.permute")
def permute(input: Array, dims: Ints) -> Array:
    """Reorder the dimensions."""
    return input.transpose(_order(dims, input.ndim))


def _swapped(rank: int, dim0: int, dim1: int) -> list[int]:
    order = list(range(rank))
    first, second = axis(dim0, rank, "dim0"), axis(dim1, rank, "dim1")
    if order:
        order[first], order[second] = second, first
    return order


@view_layer("torch.transpose")
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Swap two dimensions."""
    return input.transpose(_swapped(input.ndim, dim0, dim1))


@view_layer("torch.t")
def transpose_matrix(input: Array) -> Array:
    """Transpose a matrix; anything of fewer dimensions stays."""
    if input.ndim > 2:
        raise ArgumentError("input", f"got {input.ndim} dimensions", "at most 2")
    return input.T


def _squeezed(shape: tuple[int, ...], dim: Ints) -> tuple[int, ...]:
    places = axes(dim, len(shape))
    return tuple(size for place, size in enumerate(shape) if size != 1 or place not in places)


@view_layer("torch.squeeze")
def squeeze(input: Array, dim: Ints = ()) -> Array:
    """Drop the dimensions of size 1 among `dim`, or all of them."""
    return input.reshape(_squeezed(input.shape, dim))


def _unsqueezed(shape: tuple[int, ...], dim: Ints) -> tuple[int, ...]:
    rank = len(shape) + len(dim)
    places = {axis(each, rank) for each in dim}
    if len(places) != len(dim):
        raise ArgumentError("dim", f"got {dim}", "every dimension once")
    sizes = iter(shape)
    return tuple(1 if place in places else next(sizes) for place in range(rank))


@view_layer("torch.unsqueeze")
def unsqueeze(input: Array, dim: Ints) -> Array:
    """Insert a dimension of size 1, or as ONNX does several: `dim` counts those of the result."""
    return input.reshape(_unsqueezed(input.shape, dim))


@view_layer("Tensor.expand")
def expand(input: Array, sizes: Ints) -> Array:
    """Repeat dimensions of size 1 without copying; -1 keeps a size."""
    return np.broadcast_to(input, expanded_shape(input.shape, sizes))


@view_layer("Tensor.expand_as")
def expand_as(input: Array, other: Array) -> Array:
    """Repeat dimensions of size 1 until the shape is that of `other`."""
    return np.broadcast_to(input, expanded_shape(input.shape, other.shape, "other"))


@view_layer("Tensor.clone", "torch.clone", "Tensor.contiguous", "Tensor.detach", "Tensor.alias")
def clone(input: Array) -> Array:
    """Give the tensor itself: no layer writes to its input, so that a copy would be indistinguishable."""
    return input


def _size(input: Array | TensorSpec, dim: int | None) -> int | tuple[tuple[int, ...]]:
    shape: tuple[int, ...] = input.shape
    if dim is None:
        return (shape,)
    if not shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    return shape[axis(dim, len(shape))]


@layer("Tensor.size", infer=_size)
def size(input: Array, dim: int | None = None) -> int | tuple[tuple[int, ...]]:
    """Give the size of one dimension, or a list of all sizes."""
    return _size(input, dim)
