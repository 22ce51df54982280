"""Weights as 8-bit integers on disk, mapped: processes share them, and later starts quantize nothing."""

from engine.compiler.emit.code_store import code_key
from engine.compiler.emit.packed_files import LEAST_BYTES, PackedFiles, digest_of, packed_files
from engine.dtypes import Array
from engine.pnnx.mapped_pages import let_go
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
        if not self._files.store.is_on or weight.nbytes < LEAST_BYTES:
            return quantize_weights(weight)
        key = code_key(f"{__name__} {digest_of(weight)}")
        known = self._files.load(key)
        if known is None:
            made = quantize_weights(weight)
            known = self._files.save(key, made.integers, made.scales)
        let_go(weight)
        let_go(known.weight)
        return QuantizedWeights(known.weight, known.bias)


def quantized_files() -> QuantizedFiles:
    """Return the quantized weights of this process, in the folder of packed weights and within its bounds."""
    return QuantizedFiles(packed_files())
