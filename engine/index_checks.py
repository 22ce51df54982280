"""Checks of index tensors, with uniform error messages."""

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.spec import TensorSpec


def check_index(index: TensorSpec) -> None:
    """Check that an index has a dtype that PyTorch takes.

    Raises:
        ArgumentError: it is neither int64 nor int32.
    """
    if index.dtype not in (np.int64, np.int32):
        raise ArgumentError("index", f"got dtype {index.dtype}", "int64 or int32")


def check_range(index: Array, size: int) -> None:
    """Check indices that must be from 0 to size - 1: numpy would count negative ones from the back.

    Raises:
        ArgumentError: one is out of range.
    """
    if index.size and (index.min() < 0 or index.max() >= size):
        raise ArgumentError(
            "index", f"got from {index.min()} to {index.max()}", f"indices from 0 to {size - 1}"
        )


def check_fits(index: TensorSpec, shape: tuple[int, ...], dim: int | None, owner: str) -> None:
    """Check that an index of as many dimensions is not larger than a shape, except in dimension `dim`.

    Raises:
        ArgumentError: it has another number of dimensions, or is larger.
    """
    if index.rank != len(shape):
        raise ArgumentError("index", f"got {index.rank} dimensions", f"{len(shape)}, as {owner} has")
    pairs = zip(index.shape, shape, strict=True)
    if any(mine > theirs for place, (mine, theirs) in enumerate(pairs) if place != dim):
        raise ArgumentError("index", f"got shape {index.shape}", f"nothing larger than {owner}'s {shape}")
