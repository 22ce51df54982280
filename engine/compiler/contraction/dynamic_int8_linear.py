"""A matrix of 8-bit integers times packed weights; the number of rows is a runtime dimension.

Arguments: as of `Int8Convolution`, whose image of one row holds the matrix's rows as pixels, then the number of
rows. Sums are exact, so that results are those of the kernel for exactly so many rows, to the bit.
"""

from dataclasses import dataclass

from engine.compiler.contraction.dynamic_linear import DynamicLinear
from engine.compiler.contraction.int8_convolution import Int8Convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicInt8Linear(DynamicLinear, Int8Convolution):
    """A linear layer of integers: the loops of `DynamicLinear` around the products of `Int8Convolution`."""

    @property
    def packing(self) -> Int8Convolution:
        """The kernel whose packed weights these are as well."""
        return Int8Convolution(
            shape=self.shape,
            strides=self.strides,
            tile=self.tile,
            chunk=self.chunk,
            lanes=self.lanes,
            x_scale=self.x_scale,
        )
