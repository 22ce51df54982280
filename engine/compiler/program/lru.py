"""A dictionary that evicts its least recently used entries."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(OrderedDict[K, V]):
    """Entries in the order of their last use. Not thread-safe.

    Args:
        most: maximum entries.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def use(self, key: K) -> V | None:
        """Return the value of a key, which counts as a use; None without one."""
        if key not in self:
            return None
        self.move_to_end(key)
        return self[key]

    def put(self, key: K, value: V) -> None:
        """Add an entry as the one used last, and evict others beyond the maximum."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)
