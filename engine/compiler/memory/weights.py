"""Weights in the order in which a kernel reads them."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol
from weakref import WeakValueDictionary

from engine.compiler.memory.alignment import aligned
from engine.dtypes import Array
from engine.pnnx.mapped_pages import release_pages

OWN_KERNELS = "engine."
"""What the names of modules begin with whose kernels are identified by their text."""
_FETCHED_BYTES = 1 << 18
"""Bytes of weights from which on a thread of its own takes them sooner."""
_AT_ONCE = 4
"""Threads for that."""


class Packing(Protocol):
    """A kernel with a weight layout of its own."""

    @property
    def layout(self) -> tuple[object, ...]:
        """The weight layout: kernels of equal layout may share packed weights."""

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights and bias."""

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Return weights and bias as the kernel reads them."""


class WeightCache(Protocol):
    """Weight cache: packed weights on disk."""

    def key(self, what: str, *sources: Array) -> str | None:
        """Return the key of what is made of weights, in a way that a text identifies; None if it is not cached."""

    def load(self, key: str) -> dict[str, Array] | None:
        """Return the cached arrays of a key, or None."""

    def save(self, key: str, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
        """Store arrays, and return them as later processes will have them, if possible."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class PackedWeights:
    """Weights and bias of one operator, packed at first use. Thread-safe.

    Attributes:
        kernel: the kernel that defines the layout.
        source: weight and bias of the model; released once they are packed.
        cache: the weight cache; None for no cache.
    """

    kernel: Packing
    source: tuple[Array, Array | None] | None
    cache: WeightCache | None = None
    _packed: Mapping[str, Array] | None = field(default=None, init=False)
    _key: str | None = field(default=None, init=False)
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    def weight(self) -> Array:
        """Return the packed weights."""
        return self._pack()["weight"]

    def bias(self) -> Array:
        """Return the packed bias, zeros where there is none."""
        return self._pack()["bias"]

    def fetch(self) -> None:
        """Load the cached weights, if any; packs nothing, and releases the GIL meanwhile."""
        with self._lock:
            if self._key is not None or self.cache is None or self.source is None:
                return
            if not type(self.kernel).__module__.startswith(OWN_KERNELS):  # the source of others is in no key
                return
            sources = [array for array in self.source if array is not None]
            self._key = self.cache.key(f"{self.kernel!r} {self.kernel.layout!r}", *sources)
            self._packed = None if self._key is None else self.cache.load(self._key)
            self._release_source()

    def _pack(self) -> Mapping[str, Array]:
        with self._lock:
            self.fetch()
            if self._packed is not None:
                return self._packed
            if self.source is None:
                raise ValueError("there are no weights to pack")
            weight, bias = map(aligned, self.kernel.pack(*self.source))
            self._packed = packed = {"weight": weight, "bias": bias}
            self._release_source()
            if self.cache is not None and self._key is not None:
                self._packed = self.cache.save(self._key, packed) or packed
            return self._packed

    def _release_source(self) -> None:
        """Let the model's own weights go from memory, and forget them where they are packed."""
        for array in self.source or ():
            if array is not None:
                release_pages(array)
        if self._packed is not None:
            self.source = None


def fetch_side_by_side(weights: Iterable[PackedWeights]) -> None:
    """Load cached weights: for large models, most of a start from the caches."""
    wanted = [each for each in weights if each.source is not None and each.source[0].nbytes >= _FETCHED_BYTES]
    if len(wanted) > 1:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="weights") as threads:
            list(threads.map(PackedWeights.fetch, wanted))


class PackedStore(WeakValueDictionary[tuple[object, ...], PackedWeights]):
    """Operator and layout -> its weights, shared by the programs of a graph as long as one of them needs them.

    Args:
        cache: the weight cache; None for no cache.
    """

    def __init__(self, cache: WeightCache | None = None) -> None:
        super().__init__()
        self.cache = cache
