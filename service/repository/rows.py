"""The rows of calls' inputs: which calls can be run together, and how their rows are joined and split."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from engine import Array, Port

Signature = tuple[tuple[tuple[int, ...], "np.dtype[Any]"], ...]
"""Shape of a row and dtype of each input: calls of equal signature can be run together."""


def count_rows(inputs: Mapping[str, Array]) -> int:
    """Return the extent of the first axis that all inputs share; 1 where they share none."""
    extent = _shared_extent(inputs)
    return extent[0] if extent else 1


def batch_signature(ports: Sequence[Port], inputs: Mapping[str, Array]) -> Signature | None:
    """Return the signature of a call; None where it cannot be run together with others.

    Rows must have the shape that the file declares, as far as it declares one: batching is proved for no other shape.

    Args:
        ports: the graph's inputs.
        inputs: the call's, by operand name.
    """
    if not any(_shared_extent(inputs)):
        return None
    signature = []
    for port in ports:
        array = inputs[port.operand]
        row = array.shape[1:]
        if not _is_declared(port, row):
            return None
        signature.append((row, array.dtype))
    return tuple(signature)


def join(calls: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the inputs of several calls of equal signature as the inputs of one run; nobody may write to them."""
    return {name: np.concatenate([inputs[name] for inputs in calls]) for name in calls[0]}


def split(outputs: Sequence[Array], counts: Sequence[int]) -> list[list[Array]] | None:
    """Return each call's rows of a run's outputs; None where the outputs have another number of rows than the inputs.

    Rows are copied: a view would keep the whole batch alive, and let the responses of two clients share memory.
    """
    if any(output.shape[:1] != (sum(counts),) for output in outputs):
        return None
    return [
        [output[stop - count : stop].copy() for output in outputs]
        for stop, count in zip(accumulate(counts), counts, strict=True)
    ]


def _shared_extent(inputs: Mapping[str, Array]) -> tuple[int, ...]:
    """Return the extent of the first axis that all inputs share, as a tuple; an empty one where they share none."""
    shared: tuple[int, ...] | None = None
    for array in inputs.values():
        extent = array.shape[:1]
        if shared is None:
            shared = extent
        elif shared != extent:
            return ()
    return shared or ()


def _is_declared(port: Port, row: tuple[int, ...]) -> bool:
    """Return whether a row has the shape that an input declares, its first axis left out."""
    declared = (port.shape or ())[1:]
    if declared == row:
        return bool(port.shape)
    return len(declared) == len(row) and all(
        dim in (None, extent) for dim, extent in zip(declared, row, strict=True)
    )
