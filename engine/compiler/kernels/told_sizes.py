"""Extents and strides that the code of a kernel is told when it is called."""

from collections.abc import Sequence

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue


def only_ones(strides: Sequence[int]) -> tuple[int, ...]:
    """Return the strides that are in the code: those of 1, which vectors need; 0 stands for one that it is told."""
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

    def some(self, known: Sequence[int]) -> tuple[IRIndex, ...]:
        """Return as many integers, each as `one` does."""
        return tuple([self.one(value) for value in known])
