"""Arguments of spatial operators as PyTorch takes them: one int for all axes, and inputs without a batch."""

from collections.abc import Sequence

from engine.errors import ArgumentError


def spread(argument: str, values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return one value for each of `rank` spatial axes, a single value standing for all of them.

    Raises:
        ArgumentError: there are neither one nor `rank` values.
    """
    if len(values) == rank:
        return tuple(values)
    if len(values) == 1:
        return tuple(values) * rank
    raise ArgumentError(argument, f"got {tuple(values)}", f"one int or {rank}")


def add_batch(shape: Sequence[int], rank: int) -> tuple[tuple[int, ...], bool]:
    """Return (batch, channels, *spatial) of an input with or without its batch axis, and whether it lacked one.

    Raises:
        ArgumentError: the input has neither `rank + 2` nor `rank + 1` axes.
    """
    if len(shape) == rank + 2:
        return tuple(shape), False
    if len(shape) == rank + 1:
        return (1, *shape), True
    expected = f"{rank + 2}: (batch, channels, *spatial), or {rank + 1} without batch"
    raise ArgumentError("input", f"has {len(shape)} axes", expected)
