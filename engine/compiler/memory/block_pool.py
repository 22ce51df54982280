"""Memory that is lent to one run after the other, whichever program they run."""

import threading
from time import monotonic
from typing import Any
from weakref import WeakSet

from engine.compiler.memory.alignment import aligned_empty

_MOST_USERS = 64
"""Programs that a block remembers something for."""
_LEAST_PART = 4
"""A block is too large for runs that need less than this part of it."""
_RUNS_TOO_LARGE = 256
"""Consecutive runs that need a smaller block before it is released."""
_LARGE_BYTES = 1 << 20
"""A smaller block is never released, however long it is unused."""
_IDLE_SECONDS = 1.5
"""Seconds without a run after which a large block may be given back."""


class Block:
    """Memory of one run at a time.

    Args:
        size: bytes of it, at least.

    Attributes:
        memory: its bytes, aligned for vectors.
        size: how many there are.
        users: what those that used it keep about it, by their numbers; no references that would keep the block or them
            alive.
        waste: runs in a row that it was too large for.
        idle_since: when it was found unused, on the clock of `time.monotonic`; 0 where a run has used it since.
    """

    __slots__ = ("idle_since", "memory", "size", "users", "waste")

    def __init__(self, size: int) -> None:
        self.memory = aligned_empty(size)
        self.size = size
        self.users: dict[int, Any] = {}
        self.waste = 0
        self.idle_since = 0.0

    def note(self, user: int, what: object) -> None:
        """Cache a user's data about the block, while there are few users."""
        if len(self.users) >= _MOST_USERS:
            self.users.clear()
        self.users[user] = what


class BlockPool:
    """Pool of memory blocks of runs: one per concurrent run at the peak, each as large as the largest run. Thread-safe.

    A block that is too small for a run makes room for one that is large enough. One that was much too large for many
    runs in a row goes back to the system.
    """

    def __init__(self) -> None:
        self._free: list[Block] = []
        self._lent: dict[int, Block] = {}
        self._lock = threading.Lock()
        with _pools_lock:
            _pools.add(self)

    @property
    def free_bytes(self) -> int:
        """Bytes of the blocks that no run uses now."""
        with self._lock:
            return sum(block.size for block in self._free)

    def take(self, size: int) -> Block:
        """Return a block of so many bytes or more; the one that was given back last, if it will do.

        Raises:
            MemoryError: there is no memory for it.
        """
        with self._lock:
            free = self._free
            if (
                free and size <= free[-1].size <= size * _LEAST_PART
            ):  # mostly: runs of one program follow each other
                block = free.pop()
                block.waste = 0
                block.idle_since = 0.0
                self._lent[id(block)] = block
                return block
            for place in range(len(free) - 1, -1, -1):
                if (most := free[place].size) >= size:
                    block = free.pop(place)
                    block.waste = block.waste + 1 if size * _LEAST_PART < most else 0
                    block.idle_since = 0.0
                    self._lent[id(block)] = block
                    return block
            if free:
                free.pop()  # too small: it makes room
        block = Block(size)
        with self._lock:
            self._lent[id(block)] = block
        return block

    def give_back(self, number: int) -> None:
        """Return the block of a number, its `id`, to the pool."""
        with self._lock:
            block = self._lent.pop(number)
            if block.waste < _RUNS_TOO_LARGE:
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
