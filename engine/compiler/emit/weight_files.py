"""Weights on disk, mapped into memory and shared by processes: as in a model's `.bin`, packed, or quantized.

A model's own file may be overwritten while its weights are in use, which would kill a process that maps it. A file of
the cache is written under another name, is complete when it gets its own, and is never written again: it stays valid if
it is deleted or replaced. Only truncating it in place, which needs its owner's rights, kills the processes that read
it. Of what is mapped only what is read takes memory.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np

from engine.compiler.emit.code_store import CodeStore, code_folder, code_key
from engine.compiler.memory.alignment import ALIGNMENT
from engine.dtypes import Array
from engine.pnnx.mapped_pages import checksum_of, in_pieces, release_pages, set_sha256, sha256_of
from engine.quantization.int4 import rounded_to_int4
from engine.quantization.weights import QuantizedWeights, quantize_weights

WEIGHTS = ".weights"
"""Suffix of the cached files."""
MAX_BYTES = 3 << 30
"""Maximum bytes of cached weights."""
LEAST_BYTES = 1 << 16
"""Minimum bytes of weights: fewer are packed faster than a file is read."""

_DIGEST_BYTES = 32
_HEAD_BYTES = _DIGEST_BYTES + 8
"""Bytes of the digest of a file's table, and of its length."""


class WeightFiles:
    """Files of arrays by name. Thread-safe and multi-process-safe.

    Args:
        store: the cache on disk.
    """

    def __init__(self, store: CodeStore) -> None:
        self._store = store

    @property
    def is_on(self) -> bool:
        """Whether caching is enabled."""
        return self._store.folder is not None

    def key(self, what: str, *sources: Array) -> str | None:
        """Return the key of what is made of weights; None if it is not cached.

        It is made of their bytes, and of the engine's source.

        Args:
            what: identifies how it is made.
            sources: the weights, the largest first.
        """
        if not self.is_on or sources[0].nbytes < LEAST_BYTES:
            return None
        return code_key(" ".join((what, *map(digest_of, sources))))

    def load(self, key: str) -> dict[str, Array] | None:
        """Return the arrays of a key, mapped, read-only and aligned; None where there are none to be trusted."""
        return self._map(key, is_checked=True)

    def save(self, key: str, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
        """Store arrays, if possible; returns them mapped, as later processes will have them."""
        self._store.save_parts(f"{key}{WEIGHTS}", _content(arrays))
        # they were written a moment ago; reading them again would take memory beside those that they were made of
        return self._map(key, is_checked=False)

    def copy(self, parts: Iterable[bytes]) -> tuple[str, memoryview] | None:
        """Return the SHA-256 of bytes, and a mapped copy in a file without a name; None where there can be none."""
        digest = hashlib.sha256()

        def feed() -> Iterator[bytes]:
            for part in parts:
                digest.update(part)
                yield part

        mapped = self._store.copy(feed())
        return None if mapped is None else (digest.hexdigest(), memoryview(mapped))

    def quantize(self, weight: Array) -> QuantizedWeights:
        """Quantize float32 weights as `quantize_weights` does; pages of both are released, if mapped.

        Raises:
            BuildError: as `quantize_weights`.
        """

        def make() -> Mapping[str, Array]:
            made = quantize_weights(weight)
            return {"integers": made.integers, "scales": made.scales}

        found = self._made("int8", weight, make)
        return QuantizedWeights(found["integers"], found["scales"])

    def rounded_to_int4(self, weight: Array) -> Array:
        """Round float32 weights as the function of this name does; pages of both are released, if mapped."""
        return self._made("int4", weight, lambda: {"rounded": rounded_to_int4(weight)})["rounded"]

    def _made(self, what: str, weight: Array, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Return what is made of weights, from the cache where it is on."""
        key = self.key(what, weight)
        if key is None:
            return make()
        known: Mapping[str, Array] | None = self.load(key)
        if known is None:
            made = make()
            known = self.save(key, made) or made
        for array in (weight, *known.values()):
            release_pages(array)
        return known

    def _map(self, key: str, *, is_checked: bool) -> dict[str, Array] | None:
        """Return the arrays of a file; None where its table, or if checked anything in it, is not as it was written."""
        mapped = self._store.map(f"{key}{WEIGHTS}")
        if mapped is None:
            return None
        length = int.from_bytes(mapped[_DIGEST_BYTES:_HEAD_BYTES], "little")
        text = mapped[_HEAD_BYTES : _HEAD_BYTES + min(length, len(mapped))]
        if hashlib.sha256(text).digest() != mapped[:_DIGEST_BYTES]:
            return None
        arrays, digests = {}, {}
        start = _HEAD_BYTES + length
        try:
            for name, dtype, shape, checksum, digest in json.loads(text):
                start += -start % ALIGNMENT
                array = arrays[name] = np.ndarray(shape, dtype, mapped, start)
                if is_checked and checksum_of(bytes_of(array)) != checksum:
                    return None
                digests[start, array.nbytes] = digest
                start += array.nbytes
        except (TypeError, ValueError):  # the file was cut off, or an earlier version wrote it
            return None
        set_sha256(mapped, digests)
        return arrays


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of an array, row by row."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def digest_of(array: Array) -> str:
    """Return the identity of an array: the same bytes in another shape are other weights."""
    digest = sha256_of(array) or hashlib.sha256(bytes_of(array)).hexdigest()
    return f"{array.shape} {array.dtype.str} {digest}"


def _content(arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """Yield what a file consists of: the digest and length of a table, the table, and the arrays."""
    rows = [
        (name, array.dtype.str, array.shape, *_sums_of(bytes_of(array))) for name, array in arrays.items()
    ]
    text = json.dumps(rows).encode()
    head = hashlib.sha256(text).digest() + len(text).to_bytes(_HEAD_BYTES - _DIGEST_BYTES, "little") + text
    yield head + bytes(-len(head) % ALIGNMENT)
    for array in arrays.values():
        yield from in_pieces(bytes_of(array))
        yield bytes(-array.nbytes % ALIGNMENT)


def _sums_of(data: memoryview) -> tuple[int, str]:
    """Return the CRC-32 of bytes, which guards against damage in half the time of a digest, and their SHA-256."""
    checksum, digest = 0, hashlib.sha256()
    for piece in in_pieces(data):
        checksum = zlib.crc32(piece, checksum)
        digest.update(piece)
    return checksum, digest.hexdigest()


@lru_cache(maxsize=1)
def weight_files() -> WeightFiles:
    """Return the cached weights of this process, in the folder that its environment names at first."""
    folder = code_folder()
    return WeightFiles(CodeStore(None if folder is None else folder / "weights", MAX_BYTES))
