"""Runtime dimensions: extents and strides that are arguments of a kernel's code."""

from collections.abc import Sequence
from typing import Any

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue


def only_ones(strides: Sequence[int]) -> Any:
    """Return the strides that are constants of the code: 1, which vectors need; 0 for runtime strides."""
    return tuple(int(stride == 1) for stride in strides)


class RuntimeSizes:
    """Reads the integers that follow the addresses of a kernel's arguments, in their order.

    Args:
        e: the kernel that is being written.
        first: place of the first one among the arguments.
    """

    def __init__(self, e: Emitter, first: int) -> None:
        self._e = e
        self._place = first

    def one(self, known: int = 0) -> IRValue:
        """Return the next integer; the constant itself if it is not 0."""
        self._place += 1
        return known or self._e.size(self._place - 1)

    def some(self, known: Sequence[int]) -> Any:
        """Return a tuple of as many integers, each as `one` does."""
        return tuple([self.one(value) for value in known])
