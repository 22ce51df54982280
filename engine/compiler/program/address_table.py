"""The addresses that the kernels of a program are called with."""

from collections.abc import Callable, Mapping

import numpy as np

from engine.compiler.emit.jit import sizes_of
from engine.compiler.memory.alignment import WORD, address_of
from engine.compiler.memory.arena import Patch
from engine.compiler.memory.region import RegionError
from engine.compiler.memory.view import Buffer, BufferKind
from engine.compiler.selection import KernelCall
from engine.dtypes import Array


class AddressTable:
    """The addresses of all calls, one after the other."""

    def __init__(self, offsets: dict[Buffer, int], scratch: int) -> None:
        self._offsets = offsets
        self._scratch = scratch
        self.loads: dict[Callable[[], Array], None] = {}
        self._words: list[int] = []
        self._relative: list[int] = []
        self._patches: dict[BufferKind, dict[int, list[tuple[int, int]]]] = {
            BufferKind.VALUE: {},
            BufferKind.OUTPUT: {},
        }

    def add(self, call: KernelCall) -> int:
        """Append a call's addresses; returns the place of the first."""
        first = len(self._words)
        for view in call.arguments:
            place, buffer, offset = len(self._words), view.buffer, view.offset * WORD
            if buffer.kind is BufferKind.ARENA:
                self._relative.append(place)
                offset += self._offsets[buffer]
            elif buffer.load is not None:
                self.loads[buffer.load] = None
                offset += address_of(_loaded(buffer.load, buffer.size))
            else:
                self._patches[buffer.kind].setdefault(buffer.slot, []).append((place, offset))
            self._words.append(offset)
        if call.kernel.scratch:
            self._relative.append(len(self._words))
            self._words.append(self._scratch)
        self._words.extend(sizes_of(call.kernel))
        return first

    def patches(self, kind: BufferKind, shapes: Mapping[int, tuple[int, ...]]) -> tuple[Patch, ...]:
        """Return the addresses that are set to arrays of a kind."""
        return tuple(
            Patch(slot, tuple(entries), shapes[slot]) for slot, entries in self._patches[kind].items()
        )

    def finish(self) -> tuple[Array, Array]:
        """Return the table, and the places in it that are relative to the arena."""
        return np.array(self._words, np.uint64), np.array(self._relative, np.intp)


def _loaded(load: Callable[[], Array], size: int) -> Array:
    """Return a constant's elements, of which kernels were promised so many."""
    array = load()
    if array.size < size or array.dtype != np.float32 or not array.flags.c_contiguous:
        raise RegionError(
            f"a constant has {array.size} elements of {array.dtype}; kernels read {size} of float32"
        )
    return array
