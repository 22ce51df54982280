"""A matrix of 8-bit integers of any number of rows times packed weights, with one code that is told the rows.

Arguments: as of `IntegerConvolution`, whose image of one row holds the matrix's rows as pixels, then the number of
rows. Sums are exact, so that results are those of the kernel for exactly so many rows, to the bit.
"""

from dataclasses import dataclass

from engine.compiler.kernels.integer_convolution import IntegerConvolution
from engine.compiler.kernels.open_linear import OpenLinear


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIntegerLinear(OpenLinear, IntegerConvolution):
    """A linear layer of integers: the loops of `OpenLinear` around the products of `IntegerConvolution`."""

    @property
    def packing(self) -> IntegerConvolution:
        """The kernel whose packed weights these are as well."""
        return IntegerConvolution(
            shape=self.shape,
            strides=self.strides,
            tile=self.tile,
            chunk=self.chunk,
            lanes=self.lanes,
            x_scale=self.x_scale,
        )
