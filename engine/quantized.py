"""What a quantized operand carries during a run."""

from dataclasses import dataclass

from engine.dtypes import Array
from engine.kernels.quantization import dequantize


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTensor:
    """Integers that stand for real numbers: (value - zero_point) * scale.

    Attributes:
        values: int8, uint8 or int32; read-only by agreement, as every operand is.
        scale: what one step stands for.
        zero_point: the integer that stands for zero.
    """

    values: Array
    scale: float
    zero_point: int

    def real(self) -> Array:
        """Return the numbers that the integers stand for, float32."""
        return dequantize(self.values, self.scale, self.zero_point)
