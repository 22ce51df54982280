"""Cache of programs that were compiled in the background."""

from collections import OrderedDict
from typing import Any

import numpy as np

from engine.compiler.program.program import Program

InputKey = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shape and dtype of each input. Every run looks its program up by them, and tuples are hashed faster than specs."""

MAX_PROGRAMS = 64
MAX_BYTES = 32 << 20
"""Maximum bytes of such programs of a graph, without the memory of runs, which all programs share."""
CALL_BYTES = 40 << 10
"""Measured bytes of a kernel call without weights: machine code, the objects of plan and trace."""
_STALE = 4
"""A program is evicted only if unused for this many runs, as a multiple of the capacity."""


class ProgramCache:
    """Programs by inputs. Not thread-safe.

    When full, a program in use is not evicted: clients that cycle through more shapes would otherwise recompile all of
    them again and again.

    Args:
        most: maximum programs.
        max_bytes: maximum bytes of all programs.
        call_bytes: bytes of a kernel call.
    """

    def __init__(
        self, most: int = MAX_PROGRAMS, max_bytes: int = MAX_BYTES, call_bytes: int = CALL_BYTES
    ) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._call_bytes = call_bytes
        self._programs: OrderedDict[InputKey, tuple[Program | None, int, int]] = OrderedDict()
        self._bytes = 0
        self._clock = 0

    def __len__(self) -> int:
        return len(self._programs)

    @property
    def has_place(self) -> bool:
        """Whether there is room for one more program."""
        if len(self._programs) < self._most and self._bytes < self._max_bytes:
            return True
        _, _, last_use = next(iter(self._programs.values()))
        return self.is_stale(last_use)

    def look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        """Return whether an entry is cached, and its program; None for inputs without a usable program."""
        self._clock += 1
        entry = self._programs.get(key)
        if entry is None:
            return False, None
        program, size, _ = entry
        self._programs[key] = (program, size, self._clock)
        self._programs.move_to_end(key)
        return True, program

    @property
    def clock(self) -> int:
        """Number of lookups so far."""
        return self._clock

    def is_stale(self, last_use: int) -> bool:
        """Return whether a program last used at a time of `clock` may be evicted."""
        return self._clock - last_use > _STALE * self._most

    @property
    def in_use(self) -> list[InputKey]:
        """The inputs whose programs must not be evicted yet."""
        return [key for key, (_, _, last_use) in self._programs.items() if not self.is_stale(last_use)]

    def add(self, key: InputKey, program: Program | None) -> None:
        """Add a program, and evict the least recently used ones beyond the limits."""
        size = 0 if program is None else own_bytes(program, self._call_bytes)
        self._programs[key] = (program, size, self._clock)
        self._bytes += size
        while len(self._programs) > 1 and (len(self._programs) > self._most or self._bytes > self._max_bytes):
            _, (_, freed, _) = self._programs.popitem(last=False)
            self._bytes -= freed


def own_bytes(program: Program, call_bytes: int = CALL_BYTES) -> int:
    """Return the approximate bytes of a program without the memory of runs and shared weights."""
    return call_bytes * (1 + len(program.calls))
