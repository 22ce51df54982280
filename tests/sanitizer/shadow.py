"""What a call may do with each element of the memory that it is given, and which elements hold a value.

Every piece of memory has a shadow: a word for each element, whose bits `guard.py` names. A call may touch the
elements of its kernel's regions and no others, not even those between the rows of a part of something larger; it may
read only what was written before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.kernels.recurrent import Recurrence
from engine.compiler.memory import WORD
from engine.compiler.selection import Call
from engine.compiler.view import View
from engine.dtypes import Array
from tests.sanitizer.guard import READ, WRITE, WRITTEN


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a shadow that an argument covers.

    Attributes:
        shape: extents.
        strides: elements between neighbours along each axis.
        is_written: whether the kernel may write them.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_written: bool

    def of(self, shadow: Array, start: int) -> Array:
        """Return the words of a shadow, which are writable; elements that are there more than once are so once.

        Raises:
            AssertionError: some lie outside of the shadow.
        """
        shape = tuple(
            1 if stride == 0 else extent for extent, stride in zip(self.shape, self.strides, strict=True)
        )
        reach = [(extent - 1) * stride for extent, stride in zip(shape, self.strides, strict=True)]
        low, high = (start + sum(limit(0, step) for step in reach) for limit in (min, max))
        if 0 in shape:
            return shadow[:0]
        assert low >= 0, f"a view begins {-low} elements before its buffer"
        assert high < shadow.size, f"a view ends {high + 1 - shadow.size} elements beyond its buffer"
        steps = tuple(stride * WORD for stride in self.strides)
        return np.lib.stride_tricks.as_strided(shadow[start:], shape, steps)


def parts_of(call: Call) -> list[Part]:
    """Return what a call's arguments cover, in their order."""
    written = _written_places(call)
    return [_part(view, place in written) for place, view in enumerate(call.arguments)]


def _part(view: View, is_written: bool) -> Part:
    if (
        view.buffer.load is not None and not view.buffer.size
    ):  # packed for the kernel, which alone knows its form
        return Part((view.buffer.load().size,), (1,), False)
    return Part(view.shape, view.strides, is_written)


def _written_places(call: Call) -> range:
    """Return the arguments that a call's kernel writes: the last before the epilogue's operands."""
    kernel = call.kernel
    if isinstance(kernel, Recurrence):
        wanted = (kernel.out is not None) + sum(kernel.gives)
        return range(len(call.arguments) - wanted, len(call.arguments))
    epilogue = getattr(kernel, "epilogue", None)
    end = len(call.arguments) - (len(epilogue.operands) if epilogue is not None else 0)
    return range(end - 1, end)


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


def permit(words: Sequence[tuple[Part, Array]]) -> None:
    """Let a call read and write the elements of its arguments.

    Raises:
        AssertionError: what the call writes is also another of its arguments.
    """
    for part, shadow in words:
        if part.is_written:
            shadow[...] |= READ | WRITE
    for place, (part, shadow) in enumerate(words):
        if not part.is_written:
            meets = bool((shadow & WRITE).any())
            shadow[...] |= READ
            assert not meets, f"argument {place} lies where the call writes"


def withdraw(words: Iterable[Array]) -> None:
    """Take permission back; what was written stays so."""
    for shadow in words:
        shadow[...] &= WRITTEN
