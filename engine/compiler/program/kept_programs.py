"""The programs that were compiled beside runs: as many as there is a place for."""

from collections import OrderedDict
from typing import Any

import numpy as np

from engine.compiler.program.program import Program

InputKey = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shape and dtype of each input. Every run looks its program up by them, and tuples are hashed faster than specs."""

MOST_PROGRAMS = 64
MOST_BYTES = 32 << 20
"""What such programs of a graph may take together; memory of runs is not counted, as all programs share it."""
CALL_BYTES = 40 << 10
"""What a call of a kernel takes besides weights, as measured: machine code, the objects of plan and trace."""
_STALE = 4
"""A program is displaced only if no run used it for this many times as many runs as there are places."""


class KeptPrograms:
    """Programs by inputs. Not safe for several threads.

    Where there is no place, one that is still in use is not given up for another: clients that go through more shapes
    than there are places would have all of them compiled again and again.

    Args:
        most: programs that are kept.
        most_bytes: what they may take together.
        call_bytes: what a call of a kernel takes.
    """

    def __init__(
        self, most: int = MOST_PROGRAMS, most_bytes: int = MOST_BYTES, call_bytes: int = CALL_BYTES
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._call_bytes = call_bytes
        self._programs: OrderedDict[InputKey, tuple[Program | None, int, int]] = OrderedDict()
        self._bytes = 0
        self._clock = 0

    def __len__(self) -> int:
        return len(self._programs)

    @property
    def has_place(self) -> bool:
        """Whether one more program may be kept."""
        if len(self._programs) < self._most and self._bytes < self._most_bytes:
            return True
        _, _, last_use = next(iter(self._programs.values()))
        return self.is_stale(last_use)

    def look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        """Return whether a program is kept, and which; None stands for one that is known to be of no use."""
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
        """How many runs looked for a program so far."""
        return self._clock

    def is_stale(self, last_use: int) -> bool:
        """Tell whether what was used last at a time of `clock` may be displaced."""
        return self._clock - last_use > _STALE * self._most

    @property
    def in_use(self) -> list[InputKey]:
        """The inputs whose programs are not to be displaced yet."""
        return [key for key, (_, _, last_use) in self._programs.items() if not self.is_stale(last_use)]

    def add(self, key: InputKey, program: Program | None) -> None:
        """Keep a program, in the place of those that were not used for longest."""
        size = 0 if program is None else own_bytes(program, self._call_bytes)
        self._programs[key] = (program, size, self._clock)
        self._bytes += size
        while len(self._programs) > 1 and (
            len(self._programs) > self._most or self._bytes > self._most_bytes
        ):
            _, (_, freed, _) = self._programs.popitem(last=False)
            self._bytes -= freed


def own_bytes(program: Program, call_bytes: int = CALL_BYTES) -> int:
    """Return roughly how many bytes a program takes that are not those of a run, and not of weights that all share."""
    return call_bytes * (1 + len(program.calls))
