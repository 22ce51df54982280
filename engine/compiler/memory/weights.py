"""Weights in the order in which a kernel reads them."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import RLock
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from engine.compiler.memory.alignment import aligned
from engine.dtypes import Array
from engine.pnnx.mapped_pages import release_pages

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


class PackedArrays(NamedTuple):
    """Weights and bias as a kernel reads them.

    Attributes:
        weight: the weights.
        bias: the bias.
        digest: digest of their bytes; None if not computed.
    """

    weight: Array
    bias: Array
    digest: str | None = None


class WeightCache(Protocol):
    """Weight cache: packed weights on disk."""

    def key(self, kernel: Packing, weight: Array, bias: Array | None) -> str | None:
        """Return the key of weights and bias, packed for a kernel; None if they are not cached."""

    def load(self, key: str) -> PackedArrays | None:
        """Return the cached weights of a key, or None."""

    def save(self, key: str, weight: Array, bias: Array) -> PackedArrays:
        """Store packed weights and bias, if possible."""


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
    _packed: PackedArrays | None = field(default=None, init=False)
    _key: str | None = field(default=None, init=False)
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    def weight(self) -> Array:
        """Return the packed weights."""
        return self._pack().weight

    def bias(self) -> Array:
        """Return the packed bias, zeros where there is none."""
        return self._pack().bias

    @property
    def digest(self) -> str | None:
        """Digest of the packed bytes; None if not computed."""
        return self._pack().digest

    def fetch(self) -> None:
        """Load the cached weights, if any; packs nothing, and releases the GIL meanwhile."""
        with self._lock:
            if self._key is not None or self.cache is None or self.source is None:
                return
            self._key = self.cache.key(self.kernel, *self.source)
            self._packed = None if self._key is None else self.cache.load(self._key)
            self._release_source()

    def _pack(self) -> PackedArrays:
        with self._lock:
            return self._packed_now()

    def _packed_now(self) -> PackedArrays:
        self.fetch()
        if self._packed is not None:
            return self._packed
        if self.source is None:
            raise ValueError("there are no weights to pack")
        weight, bias = map(aligned, self.kernel.pack(*self.source))
        packed = PackedArrays(weight, bias)
        self._release_source()
        if self.cache is not None and self._key is not None:
            packed = self.cache.save(self._key, weight, bias)
        self._packed = packed
        self._release_source()
        return packed

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
