"""Extents and strides that the code of a kernel is told when it is called."""

from collections.abc import Sequence
from typing import Any

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue


def only_ones(strides: Sequence[int]) -> Any:
    """Return a tuple of the strides that are in the code: those of 1, which vectors need; 0 for what it is told."""
    return tuple(int(stride == 1) for stride in strides)


class ToldSizes:
    """Reads the integers that follow the addresses of a kernel's arguments, in their order.

    Args:
        e: the kernel that is being written.
        first: place of the first one among the arguments.
    """

    def __init__(self, e: Emitter, first: int) -> None:
        self._e = e
        self._place = first

    def one(self, known: int = 0) -> IRValue:
        """Return the next integer; the number itself where the code knows it, as it is not 0."""
        self._place += 1
        return known or self._e.size(self._place - 1)

    def some(self, known: Sequence[int]) -> Any:
        """Return a tuple of as many integers, each as `one` does."""
        return tuple([self.one(value) for value in known])
