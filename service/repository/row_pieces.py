"""Into which parts many rows are cut, so that they run on programs that are compiled already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine import MAX_RUN_BYTES, Plan

RUN_SECONDS = 50e-6
"""What a run costs, whatever it computes."""
CALL_SECONDS = 1e-6
"""What the call of a layer's kernel costs."""
MULTIPLY_ADDS_PER_SECOND = 50e9
"""What a core computes, in the order of magnitude."""
BYTES_PER_SECOND = 10e9
"""What a core reads and writes of memory, in the order of magnitude."""


@dataclass(frozen=True, slots=True)
class RowPieces:
    """Into which parts many rows are cut.

    The parts depend on the number of rows alone, and never on what was measured: equal requests are run equally, and
    served equally to the bit.

    Attributes:
        sizes: numbers of rows that programs are compiled for.
        rest: for each number of rows below the largest size, the parts that are expected to take the least time; only
            the last may be larger than the rows that are left for it.
        max_bytes: how much inputs and outputs may take together.
    """

    sizes: frozenset[int]
    rest: tuple[tuple[int, ...], ...]
    max_bytes: int = MAX_RUN_BYTES

    def parts(self, rows: int) -> tuple[int, ...]:
        """Return the sizes of the runs for a number of rows, the largest first."""
        most = len(self.rest)
        return (most,) * (rows // most) + self.rest[rows % most]

    def exact_parts(self, rows: int) -> tuple[int, ...]:
        """Return sizes whose sum is a number of rows, the largest first; none where the sizes have no such sum."""
        parts: list[int] = []
        for size in sorted(self.sizes, reverse=True):
            count, rows = divmod(rows, size)
            parts += [size] * count
        return () if rows else tuple(parts)


def cut_rows(
    sizes: Sequence[int], seconds: Callable[[int], float], max_bytes: int = MAX_RUN_BYTES
) -> RowPieces:
    """Return the parts of the least cost for every number of rows.

    Args:
        sizes: numbers of rows that programs are compiled for, at least one.
        seconds: what a run of such a number of rows is expected to take.
        max_bytes: how much inputs and outputs may take together.
    """
    costs = {size: seconds(size) for size in sorted(sizes, reverse=True)}
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for rows in range(1, max(sizes)):
        ways = ((cost + best[max(0, rows - size)][0], size) for size, cost in costs.items())
        cost, size = min(ways, key=lambda way: (way[0], -way[1]))
        parts = sorted((size, *best[max(0, rows - size)][1]), reverse=True)
        best.append((cost, tuple(parts)))
    return RowPieces(frozenset(sizes), tuple(parts for _, parts in best), max_bytes)


def expected_seconds(plan: Plan) -> float:
    """Return roughly what a run of a plan takes on one core, as the slower of its arithmetic and its memory traffic.

    It serves to compare runs of one graph (the roofline model of Williams, Waterman and Patterson, 2009).
    """
    work = (
        max(
            step.multiply_adds / MULTIPLY_ADDS_PER_SECOND,
            (step.bytes_moved or 0) / BYTES_PER_SECOND,
        )
        + CALL_SECONDS
        for step in plan.steps
    )
    return RUN_SECONDS + sum(work)
