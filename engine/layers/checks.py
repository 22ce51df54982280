"""Checks of tensors, index tensors among them, with uniform error messages."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.dtypes import Array, pnnx_name
from engine.errors import ArgumentError
from engine.spec import TensorSpec

_KIND_WORDS = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex"}


def check_kind(name: str, spec: TensorSpec, kinds: str) -> None:
    """Check that a tensor's dtype is of one of the numpy kinds in `kinds`, `"fc"` for float or complex.

    Raises:
        ArgumentError: it is of another.
    """
    if spec.dtype.kind not in kinds:
        words = " or ".join(_KIND_WORDS[kind] for kind in kinds)
        raise ArgumentError(name, f"dtype {pnnx_name(spec.dtype)}", f"a tensor of {words} dtype")


def keeps(kinds: str) -> Callable[..., TensorSpec]:
    """Make the shape rule of a layer that takes these kinds, as `check_kind` does, and keeps shape and dtype."""

    def infer(input: TensorSpec) -> TensorSpec:
        check_kind("input", input, kinds)
        return input

    return infer


def check_rank(name: str, spec: TensorSpec, *ranks: int) -> None:
    """Check that a tensor has one of these numbers of dimensions.

    Raises:
        ArgumentError: it has another.
    """
    if spec.rank not in ranks:
        words = " or ".join(map(str, ranks))
        raise ArgumentError(name, f"{spec.rank} dimensions", f"{words} dimensions")


def check_min_rank(name: str, spec: TensorSpec, rank: int) -> None:
    """Check that a tensor has at least so many dimensions.

    Raises:
        ArgumentError: it has fewer.
    """
    if spec.rank < rank:
        raise ArgumentError(name, f"{spec.rank} dimensions", f"at least {rank} dimensions")


def check_shape(name: str, spec: TensorSpec | None, shape: Sequence[int]) -> None:
    """Check that a tensor, if there is one, has this very shape.

    Raises:
        ArgumentError: it has another.
    """
    if spec is not None and spec.shape != tuple(shape):
        raise ArgumentError(name, f"shape {spec.shape}", f"shape {tuple(shape)}")


def check_size(name: str, spec: TensorSpec, axis: int, size: int) -> None:
    """Check a tensor's extent along an axis that it has.

    Raises:
        ArgumentError: it is another.
    """
    if spec.shape[axis] != size:
        raise ArgumentError(name, f"size {spec.shape[axis]} in dimension {axis}", str(size))


def check_dtype(name: str, spec: TensorSpec | None, input: TensorSpec) -> None:
    """Check that a tensor, if there is one, has the dtype of `input`.

    float32 goes with a float16 input as well: float16 weights of a file are float32 by the time a layer sees them.

    Raises:
        ArgumentError: it has another.
    """
    if spec is None or spec.dtype == input.dtype:
        return
    if pnnx_name(spec.dtype) != "f32" or pnnx_name(input.dtype) != "f16":
        raise ArgumentError(
            name, f"dtype {pnnx_name(spec.dtype)}", f"{pnnx_name(input.dtype)} as the input has"
        )


def check_channels(input: TensorSpec, channels: int, **vectors: TensorSpec | None) -> None:
    """Check vectors, as far as there are such, that have one element per channel.

    Raises:
        ArgumentError: one has another shape or dtype.
    """
    for name, vector in vectors.items():
        check_shape(name, vector, (channels,))
        check_dtype(name, vector, input)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an array of `shape` can be added to one of `target` without changing the latter's shape."""
    trailing = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape, trailing, strict=True))


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
