"""Drawings of loaded models that were computed before, as JSON with their entity tags."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import TypeAlias
from weakref import ref

from service.tagged_document import TaggedDocument

_MOST_BYTES = 16 << 20
"""Most bytes of all drawings that are kept."""

_Key: TypeAlias = tuple[ref[object], Hashable]


class LayoutCache:
    """Keeps the drawings asked for last; those of a model for as long as the model is loaded. Safe to share by threads.

    Args:
        most_bytes: most bytes that all drawings together may have; a larger one is not kept.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[_Key, TaggedDocument] = OrderedDict()
        self._lock = Lock()

    def find(self, model: object, options: Hashable) -> TaggedDocument | None:
        """Return a model's drawing with these options; None where it is not kept."""
        key = ref(model), options
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, model: object, options: Hashable, document: TaggedDocument) -> None:
        """Keep a drawing; those that were not asked for the longest give way to it, and those of models that are gone.

        Args:
            model: what it is a drawing of; anything that can be referred to weakly.
            options: what else it depends on.
            document: the drawing.
        """
        with self._lock:
            for key in [key for key in self._kept if key[0]() is None]:
                self._drop(key)
            if (ref(model), options) in self._kept:
                self._drop((ref(model), options))
            self._kept[ref(model), options] = document
            self._bytes += len(document.content)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: _Key) -> None:
        self._bytes -= len(self._kept.pop(key).content)

    def __len__(self) -> int:
        return len(self._kept)
