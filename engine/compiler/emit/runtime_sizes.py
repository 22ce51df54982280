"""Runtime dimensions: extents and strides that are arguments of a kernel's code."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.types import IRValue


def only_ones(strides: Sequence[int]) -> Any:
    """Return the strides that are constants of the code: 1, which vectors need; 0 for runtime strides."""
    return tuple(int(stride == 1) for stride in strides)


class Sizes:
    """Runtime dimensions as the code of a kernel has them: unknown.

    A kernel passes all of its own to one of these, in one order: the code's (this class), the values (`GivenSizes`), or
    what reads them in the code (`RuntimeSizes`).
    """

    def extent(self, value: int) -> Any:
        """Return what stands for an extent."""
        del value
        return 0


class GivenSizes(Sizes):
    """Collects the values of runtime dimensions.

    Attributes:
        values: the values.
    """

    def __init__(self) -> None:
        self.values: list[int] = []

    def extent(self, value: int) -> int:
        """Note an extent."""
        self.values.append(value)
        return value


class Sized(Kernel):
    """A kernel with runtime dimensions."""

    __slots__ = ()

    @abstractmethod
    def sized(self, sizes: Sizes) -> Self:
        """Return the kernel with what stands for its runtime dimensions."""

    @property
    def general(self) -> Self:
        """The kernel whose code this one runs."""
        return self.sized(Sizes())

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        given = GivenSizes()
        self.sized(given)
        return tuple(given.values)


class RuntimeSizes(Sizes):
    """Reads the integers that follow the addresses of a kernel's arguments, in their order.

    Args:
        e: the kernel that is being written.
        first: place of the first one among the arguments.
    """

    def __init__(self, e: Emitter, first: int) -> None:
        self._e = e
        self._place = first

    def extent(self, value: int) -> Any:
        """Return the next integer."""
        del value
        return self.one()

    def one(self, known: int = 0) -> IRValue:
        """Return the next integer; the constant itself if it is not 0."""
        self._place += 1
        return known or self._e.size(self._place - 1)

    def some(self, known: Sequence[int]) -> Any:
        """Return a tuple of as many integers, each as `one` does."""
        return tuple([self.one(value) for value in known])
