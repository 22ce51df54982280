"""Dimensions, shapes and indices as PyTorch counts them, checked."""

from collections.abc import Sequence
from math import prod

from engine.errors import ArgumentError

MAX_ELEMENTS = 2**31
"""Maximum elements of a tensor; a larger product is treated as an error in the model."""


def axis(dim: int, rank: int, argument: str = "dim") -> int:
    """Return `dim` counted from the front, for a tensor of `rank` dimensions.

    A tensor without dimensions takes 0 and -1, as in PyTorch.

    Raises:
        ArgumentError: there is no such dimension.
    """
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise ArgumentError(argument, f"got {dim}", f"a dimension from {-bound} to {bound - 1}")
    return dim % bound


def axes(dims: Sequence[int], rank: int, argument: str = "dim") -> tuple[int, ...]:
    """Return `dims` counted from the front; no dims mean all of them.

    A tensor without dimensions has none to return.

    Raises:
        ArgumentError: there is no such dimension, or one is named twice.
    """
    counted = tuple(axis(dim, rank, argument) for dim in dims)
    if len(set(counted)) != len(counted):
        raise ArgumentError(argument, f"got {tuple(dims)}", "every dimension once")
    if rank == 0:
        return ()
    return counted or tuple(range(rank))


def position(index: int, size: int, argument: str = "index") -> int:
    """Return an index into a dimension of `size`, counted from the front.

    Raises:
        ArgumentError: the index is out of range.
    """
    if not -size <= index < size:
        raise ArgumentError(argument, f"got {index}", f"an index from {-size} to {size - 1}")
    return index % size


def checked_shape(shape: Sequence[int], argument: str = "size") -> tuple[int, ...]:
    """Return a requested shape after validation.

    Raises:
        ArgumentError: a size is negative, or there would be absurdly many elements.
    """
    if any(size < 0 for size in shape):
        raise ArgumentError(argument, f"got {tuple(shape)}", "no negative size")
    if prod(shape) > MAX_ELEMENTS or len(shape) > 64:
        raise ArgumentError(
            argument, f"got {tuple(shape)}", f"at most {MAX_ELEMENTS} elements in 64 dimensions"
        )
    return tuple(shape)


def completed_shape(shape: Sequence[int], count: int, argument: str = "shape") -> tuple[int, ...]:
    """Return the shape of `count` elements in which at most one size is -1, with that size worked out.

    Raises:
        ArgumentError: that many elements do not fit the shape.
    """
    unknown = [place for place, size in enumerate(shape) if size == -1]
    known = prod(size for size in shape if size != -1)
    fits = known == count if not unknown else known > 0 and count % known == 0
    if len(unknown) > 1 or any(size < -1 for size in shape) or not fits:
        raise ArgumentError(
            argument, f"got {tuple(shape)}", f"a shape of {count} elements, with at most one -1"
        )
    return tuple(count // known if size == -1 else size for size in shape)


def expanded_shape(shape: Sequence[int], sizes: Sequence[int], argument: str = "sizes") -> tuple[int, ...]:
    """Return the shape that `Tensor.expand(*sizes)` gives a tensor of `shape`; -1 keeps a size.

    Raises:
        ArgumentError: a dimension that is not of size 1 would have to grow.
    """
    added = len(sizes) - len(shape)
    if added < 0 or any(size < 0 for size in sizes[:added]):
        raise ArgumentError(argument, f"got {tuple(sizes)}", f"sizes for all dimensions of {tuple(shape)}")
    kept = [old if new == -1 else new for old, new in zip(shape, sizes[added:], strict=True)]
    if any(old not in (new, 1) for old, new in zip(shape, kept, strict=True)):
        raise ArgumentError(argument, f"got {tuple(sizes)}", f"sizes that {tuple(shape)} expands to")
    return checked_shape((*sizes[:added], *kept), argument)


def broadcast(*shapes: Sequence[int], argument: str = "other") -> tuple[int, ...]:
    """Return the shape that all `shapes` broadcast to.

    Raises:
        ArgumentError: they do not.
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1 and result[place] not in (1, size):
                listed = " and ".join(str(tuple(shape)) for shape in shapes)
                raise ArgumentError(argument, f"shapes {listed} do not broadcast", "equal sizes, or 1")
            result[place] = size if size != 1 else result[place]
    return checked_shape(result, argument)


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """Return the shape left when `dims`, counted from the front, are reduced."""
    if keepdim:
        return tuple(1 if place in dims else size for place, size in enumerate(shape))
    return tuple(size for place, size in enumerate(shape) if place not in dims)
