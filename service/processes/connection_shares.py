"""How many connections each of several processes has, so that new ones go to the process with the fewest.

The numbers lie in a file that all processes map, a signed 64-bit integer for each slot, which only the process in that
slot writes; the process that started it does so once it has ended. A number below 0 is that of a slot where no new
connections are taken.
"""

import mmap
import os
import tempfile
from array import array

_NUMBER_BYTES = 8
_CLOSED = -1
_SLACK = 4
"""One in so many connections may be more than an even share, so that many that come together are taken quickly."""


def make_shares_memory(slots: int) -> int:
    """Return the descriptor of a file without a name for so many slots, in none of which connections are taken yet.

    Raises:
        OSError: the folder for temporary files has no room for it.
    """
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
    for slot in range(slots):
        withdraw(descriptor, slot)
    return descriptor


def withdraw(descriptor: int, slot: int) -> None:
    """Note that no new connections are taken in a slot; for the process that started the one in it."""
    os.pwrite(descriptor, array("q", [_CLOSED]).tobytes(), slot * _NUMBER_BYTES)


def open_shares(descriptor: int, slots: int, own: int) -> "ConnectionShares":
    """Return what a process needs to share connections with others.

    Args:
        descriptor: as `make_shares_memory` returned it.
        slots: how many there are.
        own: the process's slot.
    """
    return ConnectionShares(memoryview(mmap.mmap(descriptor, slots * _NUMBER_BYTES)).cast("q"), own)


class ConnectionShares:
    """The numbers of all processes. Used on the event loop only; without arguments, those of one process alone.

    Args:
        numbers: that of each slot.
        own: the slot of this process.
    """

    def __init__(self, numbers: "memoryview[int] | None" = None, own: int = 0) -> None:
        self._numbers = memoryview(array("q", [_CLOSED])) if numbers is None else numbers
        self._own = own
        self._count = 0
        self._is_open = False

    def begin(self) -> None:
        """Note that this process takes new connections."""
        self._is_open = True
        self._write()

    def end(self) -> None:
        """Note that it takes no more."""
        self._is_open = False
        self._write()

    def add(self) -> None:
        """Note that it has one more."""
        self._count += 1
        self._write()

    def remove(self) -> None:
        """Note that it has one less."""
        self._count -= 1
        self._write()

    def room(self, beginning: int = 0) -> int | None:
        """Return how many it may take before it is the turn of another process; None where no other takes any.

        Args:
            beginning: connections that were taken and are not counted yet.
        """
        others = [number for slot, number in enumerate(self._numbers) if slot != self._own and number >= 0]
        if not others:
            return None
        least = min(others)
        return max(least + least // _SLACK + 1 - self._count - beginning, 0)

    def _write(self) -> None:
        self._numbers[self._own] = self._count if self._is_open else _CLOSED
