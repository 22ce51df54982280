"""Run-time value of a quantized operand."""

from dataclasses import dataclass

from engine.dtypes import Array
from engine.kernels.quantization import dequantize


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTensor:
    """Quantized tensor of real numbers: (value - zero_point) * scale.

    Attributes:
        values: int8, uint8 or int32; read-only by agreement, as every operand is.
        scale: the scale.
        zero_point: the integer of zero.
    """

    values: Array
    scale: float
    zero_point: int

    def real(self) -> Array:
        """Dequantize to float32."""
        return dequantize(self.values, self.scale, self.zero_point)
