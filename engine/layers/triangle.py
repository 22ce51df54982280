"""Layers that cut triangles and diagonals out of matrices: tril, triu, diagonal, diag_embed, trace and kin."""

import numpy as np

from engine.checks import check_min_rank
from engine.dtypes import Array
from engine.registry import layer
from engine.spec import TensorSpec


def _infer_triangle(input: TensorSpec, diagonal: int) -> TensorSpec:
    del diagonal
    check_min_rank("input", input, 2)
    return input


@layer("aten::tril", infer=_infer_triangle)
def tril(input: Array, diagonal: int = 0) -> Array:
    """Keep what is on and below a diagonal of each matrix; zero elsewhere."""
    return np.where(_below(input, diagonal), input, input.dtype.type(0))


@layer("aten::triu", infer=_infer_triangle)
def triu(input: Array, diagonal: int = 0) -> Array:
    """Keep what is on and above a diagonal of each matrix; zero elsewhere."""
    return np.where(_below(input, diagonal - 1), input.dtype.type(0), input)


def _below(input: Array, diagonal: int) -> Array:
    """Tell which places of a matrix are on or below a diagonal."""
    rows, columns = np.arange(input.shape[-2])[:, np.newaxis], np.arange(input.shape[-1])
    return columns - rows <= diagonal
