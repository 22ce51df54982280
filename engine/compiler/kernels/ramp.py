"""Numbers that count up evenly.

Arguments: output, then `sizes`.
"""

from dataclasses import dataclass, replace

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.runtime_sizes import RuntimeSizes
from engine.compiler.memory.region import Region


@dataclass(frozen=True, slots=True, kw_only=True)
class RampKernel(Kernel):
    """start, start + step, …; the length is a runtime dimension.

    Attributes:
        start: the first number.
        step: between neighbours.
        length: length of the output.
        out_step: elements between neighbours in memory.
    """

    start: float
    step: float
    length: int
    out_step: int

    @property
    def general(self) -> "RampKernel":
        """The kernel whose code this one runs."""
        return replace(self, length=0, out_step=0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The runtime dimensions of the code."""
        return self.length, self.out_step

    @property
    def regions(self) -> tuple[Region, ...]:
        """The written region."""
        return (Region((self.length,), (self.out_step,), is_written=True),)

    @property
    def chunks(self) -> int:
        """One: there is little to do."""
        return 1

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""
        out = e.argument(0)
        length, step = RuntimeSizes(e, 1).some((0, 0))
        with e.loop(0, length) as loop:
            number = e.fadd(e.fmul(e.to_float(loop.index), e.scalar(self.step)), e.scalar(self.start))
            e.store_scalar(number, out, e.mul(loop.index, step))
