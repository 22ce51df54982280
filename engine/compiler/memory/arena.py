"""Assigns the same memory to tensors that are not alive at once, and that memory to one run after the other."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from weakref import WeakSet

import numpy as np

from engine.compiler.memory.alignment import ALIGNMENT, address_of, aligned_empty
from engine.dtypes import Array
from engine.errors import LayerError

_SPARE = 4
"""A run takes a block of at most so many times the size that it needs."""
_LARGE_BYTES = 1 << 20
"""A smaller block is never released, however long it is unused."""
_IDLE_SECONDS = 1.5
"""Seconds without a run after which a large block may be given back."""


class Arena:
    """Memory of one run at a time, and the table of addresses that the kernels of its program read.

    Args:
        size: bytes of it, at least.

    Attributes:
        memory: its bytes, aligned for vectors: intermediate tensors and scratch.
        size: how many there are.
        idle_since: when it was found unused, on the clock of `time.monotonic`; 0 where a run has used it since.
        template: what the table was made of; None before the first run.
        table: addresses, those of inputs and outputs to be filled in by each run.
        table_address: where the table lies.
    """

    __slots__ = ("idle_since", "memory", "size", "table", "table_address", "template")

    def __init__(self, size: int) -> None:
        self.memory = aligned_empty(size)
        self.size = size
        self.idle_since = 0.0
        self.template: Array | None = None
        self.table = np.empty(0, np.uint64)
        self.table_address = 0

    def lay_out(self, template: Array, relative: Array) -> None:
        """Make the table of a program.

        Args:
            template: the table, its entries for intermediate tensors counted from the beginning of the memory.
            relative: places of these entries.
        """
        self.table = template.copy()
        self.table[relative] += np.uint64(address_of(self.memory))
        self.table_address = address_of(self.table)
        self.template = template


class BlockPool:
    """Pool of the memory of runs, as many of similar sizes as such runs at once. Thread-safe.

    A block of a similar size that is too small for a run makes room for one that is large enough.
    """

    def __init__(self) -> None:
        self._free: list[Arena] = []
        self._lock = threading.Lock()
        with _pools_lock:
            _pools.add(self)

    @property
    def free_bytes(self) -> int:
        """Bytes of the blocks that no run uses now."""
        with self._lock:
            return sum(block.size for block in self._free)

    def take(self, size: int) -> Arena:
        """Return a block of so many bytes or more; the one that was given back last, if it will do.

        Raises:
            MemoryError: there is no memory for it.
        """
        with self._lock:
            for place in range(len(self._free) - 1, -1, -1):
                if size <= self._free[place].size <= size * _SPARE:
                    block = self._free.pop(place)
                    block.idle_since = 0.0
                    return block
            self._free = [block for block in self._free if not block.size < size <= block.size * _SPARE]
        return Arena(size)

    def give_back(self, block: Arena) -> None:
        """Return a block to the pool."""
        with self._lock:
            self._free.append(block)

    def release_idle(self, now: float) -> int:
        """Give large blocks back to the system that no run has used since an earlier call.

        Args:
            now: the time, on the clock of `time.monotonic`.

        Returns:
            Bytes of the other large blocks that no run uses now.
        """
        with self._lock:
            idle = [block for block in self._free if block.size >= _LARGE_BYTES]
            gone = [block for block in idle if block.idle_since and now - block.idle_since >= _IDLE_SECONDS]
            self._free = [block for block in self._free if block not in gone]
            for block in idle:
                block.idle_since = block.idle_since or now
            return sum(block.size for block in idle if block not in gone)


_pools: WeakSet[BlockPool] = WeakSet()
_pools_lock = threading.Lock()


def release_idle_memory() -> int:
    """Release the memory of runs that has been unused for a while.

    Call it periodically, where memory matters more than the latency of the next large run: a block that one call finds
    unused is released by a call at least 1.5 s later. Thread-safe.

    Returns:
        Bytes that were found unused, and that a later call gives back if they still are.
    """
    with _pools_lock:
        pools = list(_pools)
    now = monotonic()
    return sum(pool.release_idle(now) for pool in pools)


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


@dataclass(frozen=True, slots=True)
class Patch:
    """Addresses in the table that a run fills in.

    Attributes:
        slot: the operand's slot.
        entries: places in the table, each with the bytes between the operand's first element and what the kernel reads.
        shape: shape of the operand's array.
    """

    slot: int
    entries: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]

    def fill_in(self, arena: Arena, array: Array) -> None:
        """Have the kernels of a run read or write an array, of float32 row by row, that has to live as long as it.

        Raises:
            LayerError: the array has another shape.
        """
        if array.shape != self.shape:
            raise LayerError(f"a tensor of shape {array.shape} came where {self.shape} was planned")
        address, table = address_of(array), arena.table
        for place, offset in self.entries:  # mostly one: numpy's own loop would take longer to begin
            table[place] = address + offset


class ArenaPool:
    """Arenas of one program.

    Args:
        size: bytes of an arena.
        template, relative: as for `Arena.lay_out`.
    """

    def __init__(self, size: int, template: Array, relative: Array) -> None:
        self._size, self._template, self._relative = size, template, relative
        self._blocks = BlockPool()

    def share(self, blocks: BlockPool) -> None:
        """Take memory from a pool that others use as well; to be called while no arena is taken."""
        self._blocks = blocks

    def take(self) -> Arena:
        """Return an arena that is not in use.

        Raises:
            MemoryError: there is no memory for it.
        """
        arena = self._blocks.take(self._size)
        if arena.template is not self._template:
            arena.lay_out(self._template, self._relative)
        return arena

    def give_back(self, arena: Arena) -> None:
        """Return an arena to the pool."""
        self._blocks.give_back(arena)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
