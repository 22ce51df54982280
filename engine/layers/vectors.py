"""Layers of vectors and diagonals: torch.cross and torch.diag."""

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, broadcast
from engine.kernels.casting import cast
from engine.kernels.promotion import result_type
from engine.layers.checks import check_kind
from engine.spec import TensorSpec


def _cross_dim(shape: tuple[int, ...], dim: int | None) -> int:
    """Return the dimension of the vectors' components: by default the first of size 3."""
    if dim is None:
        if 3 not in shape:
            raise ArgumentError("input", f"got shape {shape}", "a dimension of size 3")
        return shape.index(3)
    place = axis(dim, len(shape))
    if shape[place : place + 1] != (3,):
        raise ArgumentError("dim", f"got {dim} of shape {shape}", "a dimension of size 3")
    return place


def _check_cross(input: Array | TensorSpec, other: Array | TensorSpec, dim: int | None) -> TensorSpec:
    """Check that two tensors hold vectors to multiply; return what comes of them."""
    if len(input.shape) != len(other.shape):
        raise ArgumentError("other", f"got {len(other.shape)} dimensions", f"{len(input.shape)}")
    result = TensorSpec(broadcast(input.shape, other.shape), result_type(input, other))
    check_kind("input", result, "iufc")
    _cross_dim(input.shape if dim is None else result.shape, dim)
    return result


@layer("torch.cross", "aten::linalg_cross", infer=_check_cross)
def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """Take the vector product along a dimension of size 3."""
    result = _check_cross(input, other, dim)
    a, b = np.broadcast_arrays(cast(input, result.dtype), cast(other, result.dtype))
    return np.cross(a, b, axis=_cross_dim(input.shape if dim is None else result.shape, dim))


def _infer_diag(input: TensorSpec, diagonal: int) -> TensorSpec:
    if input.rank == 1:
        return input.with_shape((input.size + abs(diagonal),) * 2)
    if input.rank != 2:
        raise ArgumentError("input", f"got {input.rank} dimensions", "1 or 2")
    rows, columns = input.shape
    if not -rows <= diagonal <= columns:
        raise ArgumentError("diagonal", f"got {diagonal}", f"from {-rows} to {columns}")
    return input.with_shape((min(rows, columns, rows + diagonal, columns - diagonal),))


@layer("torch.diag", infer=_infer_diag)
def diag(input: Array, diagonal: int = 0) -> Array:
    """Take a diagonal of a matrix, or make the matrix that has a vector on a diagonal."""
    return np.diag(input, diagonal)
