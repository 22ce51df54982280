"""A long run over random graphs and named cases: what was covered, and what was found."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.differential.branches import Branches, measured
from tests.differential.case import GraphCase, is_named, named_cases
from tests.differential.comparison import Finding, Tally, compare
from tests.differential.generator import random_case
from tests.differential.modes import modes_of, rounded_mode_of
from tests.differential.rounding import ROUNDED, can_round, compare_rounded
from tests.differential.selections import Selections, counted
from tests.differential.shrinking import shrink

Check = Callable[[GraphCase, int, Tally], Finding | None]
"""Compares a case, the index of which chooses the modes; returns what is wrong."""


@dataclass(slots=True)
class DifferentialReport:
    """What a long run covered and found.

    Attributes:
        graphs: graphs that were run.
        operators: PNNX type -> how many of them were in these.
        tally: runs that were compared.
        selections: kernels that were chosen.
        branches: folder of rules -> its branches.
        findings: cases that came out wrong, made small, and what was seen.
        seconds: how long it took.
    """

    graphs: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    selections: Selections = field(default_factory=Counter)
    branches: dict[str, Branches] = field(default_factory=dict)
    findings: list[tuple[GraphCase, Finding]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Extent:
    """How long a run goes on.

    Attributes:
        seed: what graphs are drawn from.
        first: index of the first graph.
        count: how many, at most.
        seconds: after how many no other is begun; None for as many as `count` says.
    """

    seed: int
    first: int
    count: int
    seconds: float | None = None

    def cases(self, started: float) -> Iterable[tuple[int, GraphCase]]:
        """Yield the named cases, then random ones with their index."""
        yield from enumerate(named_cases())
        for index in range(self.first, self.first + self.count):
            if self.seconds is not None and time.monotonic() - started > self.seconds:
                return
            yield index, random_case(self.seed, index)


def hunt(extent: Extent, checks: Iterable[Check], note: Callable[[GraphCase], None]) -> DifferentialReport:
    """Compare cases in every way that there is, and make those small that come out wrong.

    Args:
        extent: how long.
        checks: the ways.
        note: is called with each case before it runs: it may end the process.
    """
    report, started, checks = DifferentialReport(), time.monotonic(), list(checks)
    with measured(report.branches), counted(report.selections):
        for index, case in extent.cases(started):
            note(case)
            report.graphs += 1
            report.operators.update(line.type for line in case.operators)
            for check in checks:
                finding = check(case, index, report.tally)
                if finding is not None:
                    report.findings.append(_smallest(case, index, check, finding))
    report.seconds = time.monotonic() - started
    return report


def _smallest(case: GraphCase, index: int, check: Check, finding: Finding) -> tuple[GraphCase, Finding]:
    """Make a failing case small, and return what is wrong with the small one."""

    def fails(smaller: GraphCase) -> bool:
        found = check(smaller, index, Tally())
        return found is not None and found.kind == finding.kind

    small = shrink(case, fails)
    return small, check(small, index, Tally()) or finding


def compare_backends(count: int) -> Check:
    """Return the check of native against numpy, in as many modes."""

    def check(case: GraphCase, index: int, tally: Tally) -> Finding | None:
        return compare(case, modes_of(index, count), tally)

    return check


def compare_precisions(case: GraphCase, index: int, tally: Tally) -> Finding | None:
    """Compare a case in bfloat16 and int8 with float32, where it has what these make another of."""
    for precision in ROUNDED:
        if not can_round(case, precision):
            continue
        mode = rounded_mode_of(index, precision)
        for rounds in _choices(case, index, precision):
            finding = compare_rounded(case, mode, precision, tally, rounds=rounds)
            if finding is not None:
                return finding
    return None


def _choices(case: GraphCase, index: int, precision: str) -> Sequence[bool]:
    """Return whether to round all that can be, and whether to go by the estimates: by these most small layers stay.

    A named case is there for a branch, which may be on either side; random ones take turns.
    """
    if precision == "int8":
        return (True,)
    return (True, False) if is_named(case) else (index % 3 != 0,)
