"""Which branches of the compiler's rules a run takes, measured by coverage.py."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import coverage

import engine

RULES = ("selection", "lowering")
_COMPILER = Path(engine.__file__).parent / "compiler"


@dataclass(slots=True)
class Branches:
    """The branches of one folder of rules.

    Attributes:
        total: how many there are.
        taken: how many were taken.
        missing: file -> branches that were not, as (line, line that it leads to; below 0 for the function's end).
    """

    total: int = 0
    taken: int = 0
    missing: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Share that was taken."""
        return self.taken / self.total if self.total else 1.0


@contextmanager
def measured(found: dict[str, Branches]) -> Iterator[None]:
    """Measure what runs inside; `found` gets the branches by folder of rules."""
    include = [str(_COMPILER / name / "*.py") for name in RULES]
    measure = coverage.Coverage(
        data_file=None, branch=True, include=include, config_file=False, messages=False
    )
    # rules were imported before, and a run may use none of them
    measure.set_option(
        "run:disable_warnings", ["already-imported", "no-data-collected", "module-not-measured"]
    )
    measure.start()
    try:
        yield
    finally:
        measure.stop()
        found.update(_read(measure))


def _read(measure: coverage.Coverage) -> dict[str, Branches]:
    found = {name: Branches() for name in RULES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        try:
            measure.json_report(outfile=str(path))
        except coverage.exceptions.NoDataError:
            return found
        files = json.loads(path.read_text())["files"]
    for name, data in files.items():
        branches = found[Path(name).parent.name]
        branches.total += data["summary"]["num_branches"]
        branches.taken += data["summary"]["covered_branches"]
        if data["missing_branches"]:
            branches.missing[Path(name).name] = [(line, to) for line, to in data["missing_branches"]]
    return found
