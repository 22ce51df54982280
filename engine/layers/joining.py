"""Layers that join tensors or take one apart along a dimension: cat, stack, split, chunk, tensor_split, unbind."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis
from engine.kernels.promotion import result_type
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec


def _members(tensors: Sequence[Any], kind: type[Any]) -> list[Any]:
    """Return the tensors that are joined: the operands, or the members of the one list among them."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tensors[0]
    if not tensors:
        raise ArgumentError("tensors", "got none", "at least one tensor")
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, kind):
            raise ArgumentError(f"inputs.{place}", f"got {tensor!r}", "a tensor")
    return list(tensors)


def _is_skipped(tensor: Any) -> bool:
    """Return whether PyTorch leaves a tensor out: one of shape (0,) fits any other."""
    return bool(tensor.shape == (0,))


def infer_cat(*tensors: TensorSpec, dim: int) -> TensorSpec:
    """Work out what tensors joined along a dimension are."""
    members = _members(tensors, TensorSpec)
    joined = [member for member in members if not _is_skipped(member)] or members[:1]
    first = joined[0]
    if not first.rank:
        raise ArgumentError("inputs.0", "got no dimensions", "a tensor with dimensions")
    place = axis(dim, first.rank)
    for member in joined:
        others = zip(member.shape, first.shape, strict=False)
        if member.rank != first.rank or any(a != b for i, (a, b) in enumerate(others) if i != place):
            problem = f"got shape {member.shape}"
            argument = f"inputs.{members.index(member)}"
            raise ArgumentError(argument, problem, f"that of {first.shape}, but for dimension {place}")
    total = sum(member.shape[place] for member in joined)
    shape = (*first.shape[:place], total, *first.shape[place + 1 :])
    return TensorSpec(shape, result_type(*members))


@layer("torch.cat", infer=infer_cat)
def cat(*tensors: Any, dim: int = 0) -> Array:
    """Join tensors along a dimension that they have."""
    members = _members(tensors, np.ndarray)
    joined = [member for member in members if not _is_skipped(member)] or members[:1]
    return np.concatenate(joined, axis(dim, joined[0].ndim), dtype=result_type(*members), casting="unsafe")


def _infer_stack(*tensors: TensorSpec, dim: int) -> TensorSpec:
    members = _members(tensors, TensorSpec)
    first = members[0]
    for place, member in enumerate(members):
        if member.shape != first.shape:
            raise ArgumentError(f"inputs.{place}", f"got shape {member.shape}", f"{first.shape}")
    place = axis(dim, first.rank + 1)
    shape = (*first.shape[:place], len(members), *first.shape[place:])
    return TensorSpec(shape, result_type(*members))


@layer("torch.stack", infer=_infer_stack)
def stack(*tensors: Any, dim: int = 0) -> Array:
    """Join tensors of one shape along a new dimension."""
    members = _members(tensors, np.ndarray)
    place = axis(dim, members[0].ndim + 1)
    return np.stack(members, place, dtype=result_type(*members), casting="unsafe")


def _places(input: Any, dim: int) -> int:
    """Return the dimension that is taken apart."""
    if not input.shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    return axis(dim, len(input.shape))


def _cut(input: Array, place: int, bounds: Sequence[int]) -> tuple[Array, ...]:
    """Return views between each bound and the next."""
    before = (slice(None),) * place
    return tuple(input[(*before, slice(start, max(start, end)))] for start, end in pairwise(bounds))


def _even_bounds(size: int, step: int) -> list[int]:
    """Return the bounds of pieces of `step`, the last of which may be smaller; at least one piece."""
    return [*range(0, max(size, 1), max(step, 1)), size]


def _split_bounds(size: int, sections: Ints, even: bool) -> list[int]:
    argument = "split_size_or_sections"
    if any(section < 0 for section in sections):
        raise ArgumentError(argument, f"got {sections}", "no negative size")
    if not even:
        if sum(sections) != size:
            raise ArgumentError(argument, f"got {sections}", f"sizes that add up to {size}")
        return list(accumulate(sections, initial=0))
    if sections[0] == 0 and size:
        raise ArgumentError(argument, "got 0", f"a size that {size} can be split into")
    return _even_bounds(size, sections[0])


def _sections(value: int | Ints) -> tuple[Ints, bool]:
    """Return the sizes, and whether a single one applies to all pieces."""
    return ((value,), True) if isinstance(value, int) else (value, False)


@view_layer("torch.split")
def split(tensor: Array, split_size_or_sections: int | Ints, dim: int = 0) -> tuple[Array, ...]:
    """Take a tensor apart into pieces of one size, or of the given sizes."""
    place = _places(tensor, dim)
    sections, even = _sections(split_size_or_sections)
    return _cut(tensor, place, _split_bounds(tensor.shape[place], sections, even))


def _chunk_bounds(size: int, chunks: int) -> list[int]:
    if chunks < 1:
        raise ArgumentError("chunks", f"got {chunks}", "at least 1")
    if size == 0:
        return [0] * (chunks + 1)
    return _even_bounds(size, -(-size // chunks))


@view_layer("torch.chunk")
def chunk(input: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """Take a tensor apart into at most `chunks` pieces, all but the last of one size."""
    place = _places(input, dim)
    return _cut(input, place, _chunk_bounds(input.shape[place], chunks))


@view_layer("aten::unsafe_chunk")
def unsafe_chunk(input: Array, chunks: int, dim: int = 0) -> list[Array]:
    """Do as torch.chunk, but give one list: the cells of LSTM and GRU take their gates apart so."""
    return list(chunk(input, chunks, dim))


@view_layer("aten::unsafe_split", "aten::unsafe_split_with_sizes")
def unsafe_split(tensor: Array, split_size_or_sections: int | Ints, dim: int = 0) -> list[Array]:
    """Do as torch.split, but give one list."""
    return list(split(tensor, split_size_or_sections, dim))


def _tensor_split_bounds(size: int, sections: int | None, indices: Ints | None) -> list[int]:
    if indices is not None:
        return [0, *(slice(None, index).indices(size)[1] for index in indices), size]
    if sections is None or sections < 1:
        raise ArgumentError("sections", f"got {sections}", "at least 1, or indices")
    small, larger = divmod(size, sections)
    lengths = [small + 1] * larger + [small] * (sections - larger)
    return list(accumulate(lengths, initial=0))


@view_layer("torch.tensor_split")
def tensor_split(
    input: Array, sections: int | None = None, indices: Ints | None = None, dim: int = 0
) -> tuple[Array, ...]:
    """Take a tensor apart into `sections` pieces of nearly one size, or at `indices`."""
    place = _places(input, dim)
    return _cut(input, place, _tensor_split_bounds(input.shape[place], sections, indices))


@view_layer("torch.unbind")
def unbind(input: Array, dim: int = 0) -> tuple[Array, ...]:
    """Take a tensor apart into one tensor per index of a dimension."""
    place = _places(input, dim)
    return tuple(input[(slice(None),) * place + (index, ...)] for index in range(input.shape[place]))
