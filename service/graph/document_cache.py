"""Documents about loaded models that were made before, such as drawings, with their entity tags."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import TypeAlias
from weakref import ref

from service.tagged_document import TaggedDocument

_MAX_BYTES = 16 << 20
"""Maximum bytes of all documents that are kept."""
_MAX_DOCUMENTS = 256
"""Maximum documents, however short they are: what distinguishes them takes memory, too."""

_Key: TypeAlias = tuple[ref[object], Hashable]


class DocumentCache:
    """Keeps the documents asked for last, each for as long as its model is loaded. Safe to share by threads.

    Args:
        max_bytes: maximum bytes that all documents together may have; a larger one is not kept.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[_Key, TaggedDocument] = OrderedDict()
        self._lock = Lock()

    def find(self, model: object, options: Hashable) -> TaggedDocument | None:
        """Return a model's document with these options; None where it is not kept."""
        key = ref(model), options
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def keep(self, model: object, options: Hashable, document: TaggedDocument) -> None:
        """Keep a document; the least recently used, and those of models that are gone, are evicted.

        Args:
            model: what it is about; anything that can be referred to weakly.
            options: what else it depends on.
            document: the document.
        """
        with self._lock:
            for key in [key for key in self._kept if key[0]() is None]:
                self._drop(key)
            if (ref(model), options) in self._kept:
                self._drop((ref(model), options))
            self._kept[ref(model), options] = document
            self._bytes += len(document.content)
            while self._bytes > self._max_bytes or len(self._kept) > _MAX_DOCUMENTS:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: _Key) -> None:
        self._bytes -= len(self._kept.pop(key).content)

    def __len__(self) -> int:
        return len(self._kept)
