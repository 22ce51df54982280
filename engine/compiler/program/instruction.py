"""The instructions of a program: sequences of kernel calls, and operators in numpy between them."""

from dataclasses import dataclass

from engine.compiler.threads.segment import Segment


@dataclass(frozen=True, slots=True)
class NativeSteps:
    """Kernel calls that run in one native call.

    Attributes:
        segment: the calls.
        owners: for each call, the place in the plan of the operator that its time counts for.
        first: number of the first call; a program's calls and numpy steps are counted together, in their order.
    """

    segment: Segment
    owners: tuple[int, ...]
    first: int

    def part(self, start: int, stop: int) -> "NativeSteps":
        """Return the calls from one place up to another, at least one."""
        if (start, stop) == (0, len(self.segment)):
            return self
        return NativeSteps(
            Segment(self.segment.steps[start:stop]), self.owners[start:stop], self.first + start
        )


@dataclass(frozen=True, slots=True)
class NumpyStep:
    """An operator that numpy runs.

    Attributes:
        step: its place in the plan.
        number: its number; a program's calls and numpy steps are counted together, in their order.
        collects: whether it only puts together values that leave the graph: they are arrays of their own.
    """

    step: int
    number: int
    collects: bool = False
