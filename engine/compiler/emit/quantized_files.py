"""Quantized weights on disk, mapped: processes share them, and later starts quantize nothing."""

from collections.abc import Callable

import numpy as np

from engine.compiler.emit.code_store import code_key
from engine.compiler.emit.packed_files import LEAST_BYTES, PackedFiles, digest_of, packed_files
from engine.dtypes import Array
from engine.pnnx.mapped_pages import release_pages
from engine.quantization.int4 import rounded_to_int4
from engine.quantization.weights import QuantizedWeights, quantize_weights


class QuantizedFiles:
    """Quantized weights by the weights that they were made of. Thread-safe and from many processes.

    Args:
        files: the cache of mapped weights.
    """

    def __init__(self, files: PackedFiles) -> None:
        self._files = files

    def quantize(self, weight: Array) -> QuantizedWeights:
        """Quantize float32 weights as `quantize_weights` does; pages of both are released, if mapped.

        Raises:
            BuildError: as `quantize_weights`.
        """
        return QuantizedWeights(*self._made("", weight, _quantized))

    def rounded_to_int4(self, weight: Array) -> Array:
        """Round float32 weights as the function of this name does; pages of both are released, if mapped."""
        return self._made("int4", weight, lambda array: (rounded_to_int4(array), np.zeros(0, np.float32)))[0]

    def _made(
        self, what: str, weight: Array, make: Callable[[Array], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Return what is made of weights, from the cache where it is on."""
        if not self._files.store.is_on or weight.nbytes < LEAST_BYTES:
            return make(weight)
        key = code_key(f"{__name__} {what} {digest_of(weight)}")
        known = self._files.load(key)
        if known is None:
            known = self._files.save(key, *make(weight))
        release_pages(weight)
        release_pages(known.weight)
        return known.weight, known.bias


def _quantized(weight: Array) -> tuple[Array, Array]:
    made = quantize_weights(weight)
    return made.integers, made.scales


def quantized_files() -> QuantizedFiles:
    """Return the quantized weights of this process, in the folder of packed weights and within its bounds."""
    return QuantizedFiles(packed_files())
