"""Assigns the same memory to tensors that are not alive at once, and that memory to one run after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from engine.compiler.memory.alignment import ALIGNMENT, address_of
from engine.compiler.memory.block_pool import Block, BlockPool
from engine.dtypes import Array

_numbers = count()


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer's size and when it is in use.

    Attributes:
        size: bytes.
        first: instruction that fills it.
        last: last instruction that reads it.
    """

    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Memory layout of buffers in an arena.

    Attributes:
        offsets: bytes from its beginning, one per lifetime.
        size: bytes of the arena.
    """

    offsets: tuple[int, ...]
    size: int


def arrange(lifetimes: Sequence[Lifetime]) -> Arrangement:
    """Give each buffer an offset that is free while it is in use, by the best of a few orders."""
    least = least_size([Lifetime(_rounded(life.size), life.first, life.last) for life in lifetimes])
    best = None
    for order in _orders(lifetimes):
        tried = _arrange_in(order, lifetimes)
        if best is None or tried.size < best.size:
            best = tried
        if best.size == least:
            break
    return best or Arrangement((), 0)


def _orders(lifetimes: Sequence[Lifetime]) -> Iterator[list[int]]:
    """Yield orders to place buffers in: the largest first, or those of the fullest moments first."""
    places = range(len(lifetimes))
    yield sorted(places, key=lambda i: (-lifetimes[i].size, lifetimes[i].first))
    held: dict[int, int] = {}
    for life in lifetimes:
        for moment in range(life.first, life.last + 1):
            held[moment] = held.get(moment, 0) + life.size
    fullest = [max(held[moment] for moment in range(life.first, life.last + 1)) for life in lifetimes]
    yield sorted(
        places, key=lambda i: (-fullest[i], lifetimes[i].first - lifetimes[i].last, -lifetimes[i].size)
    )
    yield sorted(places, key=lambda i: (-fullest[i], -lifetimes[i].size))


def _arrange_in(order: Sequence[int], lifetimes: Sequence[Lifetime]) -> Arrangement:
    """Place buffers one by one, each at the lowest offset that is free while it is in use."""
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    size = 0
    for index in order:
        life = lifetimes[index]
        offset = 0
        for other in placed:
            there = lifetimes[other]
            meets = there.first <= life.last and life.first <= there.last
            if (
                meets
                and offset < offsets[other] + _rounded(there.size)
                and offsets[other] < offset + life.size
            ):
                offset = offsets[other] + _rounded(there.size)
        offsets[index] = offset
        size = max(size, offset + _rounded(life.size))
        placed.append(index)
        placed.sort(key=offsets.__getitem__)
    return Arrangement(tuple(offsets), size)


def least_size(lifetimes: Sequence[Lifetime]) -> int:
    """Return the peak bytes in use, a lower bound of every arrangement."""
    changes: dict[int, int] = {}
    for life in lifetimes:
        changes[life.first] = changes.get(life.first, 0) + life.size
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.size
    held = most = 0
    for moment in sorted(changes):
        held += changes[moment]
        most = max(most, held)
    return most


class Arena:
    """A block as the memory of one program's runs, and the table of addresses that the kernels read.

    Args:
        block: the memory.
        template: the table, its entries for intermediate tensors counted from the beginning of the memory.
        relative: places of these entries.

    Attributes:
        block: number of the block.
        memory: the bytes of intermediate tensors and scratch.
        table: addresses, those of inputs and outputs to be filled in by each run.
        table_address: where the table lies.
    """

    __slots__ = ("block", "memory", "table", "table_address")

    def __init__(self, block: Block, template: Array, relative: Array) -> None:
        self.block = id(block)
        self.memory = block.memory
        self.table = template.copy()
        self.table[relative] += np.uint64(address_of(self.memory))
        self.table_address = address_of(self.table)


class ArenaPool:
    """Arenas of one program.

    Args:
        size: bytes of an arena.
        template, relative: as for `Arena`.
    """

    def __init__(self, size: int, template: Array, relative: Array) -> None:
        self._size, self._template, self._relative = size, template, relative
        self._number = next(_numbers)
        self._blocks = BlockPool()

    def share(self, blocks: BlockPool) -> None:
        """Take memory from a pool that others use as well; to be called while no arena is taken."""
        self._blocks = blocks

    def take(self) -> Arena:
        """Return an arena that is not in use.

        Raises:
            MemoryError: there is no memory for it.
        """
        block = self._blocks.take(self._size)
        arena: Arena | None = block.users.get(self._number)
        if arena is None:
            try:
                arena = Arena(block, self._template, self._relative)
                block.note(self._number, arena)
            except MemoryError:
                self._blocks.give_back(id(block))
                raise
        return arena

    def give_back(self, arena: Arena) -> None:
        """Return an arena to the pool."""
        self._blocks.give_back(arena.block)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
