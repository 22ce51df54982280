"""What a call may do with each element of the memory that it is given, and which elements hold a value.

Every piece of memory has a shadow: a word for each element, whose bits `guard.py` names. A call may touch the
elements of the regions that its kernel states and no others, not even those between the rows of a part of something
larger; and it may read only what was written before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.memory.alignment import WORD
from engine.compiler.memory.region import Region
from engine.compiler.memory.view import View
from engine.dtypes import Array
from tests.sanitizer.guard import GIVEN, READ, WRITE, WRITTEN


class Shadows:
    """The shadows of a run's memory, by address."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Array] = {}

    def at(self, address: int, size: int, *, holds_values: bool) -> Array:
        """Return the shadow of so many elements; made the first time, as memory that holds values or does not."""
        key = address, size
        if key not in self._known:
            self._known[key] = np.full(size, WRITTEN if holds_values else 0, np.int32)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Permission:
    """The words of a call's argument.

    Attributes:
        given: of the elements of its view.
        touched: of those that its kernel says that it touches.
        is_written: whether the kernel may write them.
    """

    given: Array
    touched: Array
    is_written: bool


def permission(shadow: Array, view: View, region: Region) -> Permission:
    """Return the words of an argument, given the shadow of the buffer that its view is of.

    Raises:
        AssertionError: it reaches beyond the buffer.
    """
    given, touched = (words(shadow, view.offset, each.shape, each.strides) for each in (view, region))
    return Permission(given, touched, region.is_written)


def words(shadow: Array, start: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """Return words of a shadow, which are writable; elements that are there more than once are so once.

    Raises:
        AssertionError: some lie outside of the shadow.
    """
    shape = tuple(1 if stride == 0 else extent for extent, stride in zip(shape, strides, strict=True))
    if 0 in shape:
        return shadow[:0]
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = (start + sum(limit(0, step) for step in reach) for limit in (min, max))
    assert low >= 0, f"an argument begins {-low} elements before its buffer"
    assert high < shadow.size, f"an argument ends {high + 1 - shadow.size} elements beyond its buffer"
    return np.lib.stride_tricks.as_strided(shadow[start:], shape, [stride * WORD for stride in strides])


def permit(permissions: Sequence[Permission]) -> None:
    """Let a call read and write the regions of its arguments.

    Raises:
        AssertionError: a region has elements that are none of its argument's, or that the call also writes by another.
    """
    for place, each in enumerate(permissions):
        each.given[...] |= GIVEN
        assert (each.touched & GIVEN).all(), f"the region of argument {place} is no part of it"
        each.given[...] &= ~GIVEN
    for place, each in enumerate(permissions):
        if each.is_written:
            assert not (each.touched & WRITE).any(), f"argument {place} lies where the call writes another"
            each.touched[...] |= READ | WRITE
    for place, each in enumerate(permissions):
        if not each.is_written:
            assert not (each.touched & WRITE).any(), f"argument {place} lies where the call writes"
            each.touched[...] |= READ


def withdraw(permissions: Iterable[Permission]) -> None:
    """Take permission back; what was written stays so.

    Raises:
        AssertionError: elements that were to be written were not.
    """
    for place, each in enumerate(permissions):
        if each.is_written:
            assert (each.touched & WRITTEN).all(), (
                f"elements of argument {place}, an output, were left as they were"
            )
        each.touched[...] &= WRITTEN
