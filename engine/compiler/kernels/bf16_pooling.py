"""Maximum pooling of pairs of bfloat16, two channels to an element."""

from dataclasses import dataclass

from engine.compiler.emit.bfloat16 import apart, joined
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue
from engine.compiler.emit.vector_math import maximum
from engine.compiler.kernels.int8_pooling import Int8Pooling


@dataclass(frozen=True, slots=True, kw_only=True)
class Bf16Pooling(Int8Pooling):
    """A maximum over windows of one exact shape; NaN goes on. `words` counts the pairs of a pixel."""

    def _largest(self, e: Emitter, values: list[IRValue]) -> IRValue:
        """Return the larger numbers of vectors of pairs, each half separately."""
        first, second = apart(e, values[0])
        for value in values[1:]:
            low, high = apart(e, value)
            first, second = maximum(e, first, low), maximum(e, second, high)
        return joined(e, first, second)
