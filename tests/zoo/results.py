"""What a run of the zoo found, as data and as JSON: one file for each network, so that a run can go on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

BUILD = Path("build/zoo")
"""Where every run writes to."""
SAVED = Path("docs/bench/zoo.json")
"""Where a run writes to that is to be shown."""
OURS = "kuiper"
"""What a row calls this engine among the runtimes."""


@dataclass(frozen=True)
class Export:
    """One export of a network.

    Attributes:
        problem: why there is none, or what is wrong with it; empty where nothing is; None before it was tried.
        difference: the largest to PyTorch's outputs over all checked shapes, relative to the largest of its output.
        shapes: how many were checked.
        seconds: what the export took.
    """

    problem: str | None = None
    difference: float | None = None
    shapes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """One network.

    Attributes:
        name: the network's.
        package: which it is from.
        commit: of this project.
        fixed, dynamic: exports with fixed and with dynamic sizes.
        native: share of a run's time that compiled kernels take; None where it does not run.
        numpy: type of an operator that ran in numpy -> its share of the time.
        times: runtime -> median seconds of a run at fixed sizes, one thread, float32.
        differences: runtime -> its largest difference to PyTorch's outputs, as in exports.
        notes: what else there is to know.
        is_complete: whether the network was measured to its end.
    """

    name: str
    package: str
    commit: str
    fixed: Export = Export()
    dynamic: Export = Export()
    native: float | None = None
    numpy: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)
    differences: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_complete: bool = False

    @property
    def difference(self) -> float | None:
        """The largest difference of both exports; None where there is none."""
        known = [item.difference for item in (self.fixed, self.dynamic) if item.difference is not None]
        return max(known, default=None)

    def failed(self, problem: str) -> "Row":
        """Return the row of a network whose process ended early, with why at the step that it had come to."""
        if self.fixed.problem is None:
            return replace(self, fixed=Export(problem), is_complete=True)
        if self.dynamic.problem is None:
            return replace(self, dynamic=Export(problem), is_complete=True)
        return replace(self, notes=(*self.notes, problem), is_complete=True)

    @property
    def ratio(self) -> float | None:
        """This engine's time over that of the fastest other runtime; None where one of them is not known."""
        peers = [seconds for runtime, seconds in self.times.items() if runtime != OURS]
        return self.times[OURS] / min(peers) if peers and OURS in self.times else None


@dataclass(frozen=True)
class ZooReport:
    """A run.

    Attributes:
        machine: what it ran on.
        date: its day, such as 2026-11-22.
        rows: one for each network.
    """

    machine: Mapping[str, str]
    date: str
    rows: tuple[Row, ...]


_ROW, _REPORT = TypeAdapter(Row), TypeAdapter(ZooReport)


def row_to_json(row: Row) -> str:
    """Return a row as JSON."""
    return _ROW.dump_json(row, indent=1).decode() + "\n"


def row_from_json(text: str) -> Row:
    """Return the row of a JSON text that `row_to_json` wrote.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _ROW.validate_json(text)


def to_json(report: ZooReport) -> str:
    """Return a report as JSON."""
    return _REPORT.dump_json(report, indent=1).decode() + "\n"


def from_json(text: str) -> ZooReport:
    """Return the report of a JSON text that `to_json` wrote.

    Raises:
        pydantic.ValidationError: it is none.
    """
    return _REPORT.validate_json(text)


def one_line(problem: object) -> str:
    """Return a problem as one line."""
    return " ".join(str(problem).split())
