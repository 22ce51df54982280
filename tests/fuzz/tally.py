"""How many inputs all kept runs of the fuzzers have tried, by target."""

import datetime
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

SAVED = Path("docs/bench/fuzz.json")
"""Where the sums are kept that documentation shows."""
_COUNTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)|(\d+) models tried from seed")
"""How libFuzzer and `tests.fuzz.models` report how many inputs it has tried."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of several runs.

    Attributes:
        inputs: target -> inputs that were tried.
        findings: target -> runs that have ended with a finding; targets without any are left out.
        since: the day of the first run, such as 2026-11-22.
        until: the day of the last.
    """

    inputs: Mapping[str, int]
    findings: Mapping[str, int]
    since: str
    until: str


def count_in(line: str) -> int:
    """Return how many inputs a line of a run's report says were tried; 0 where it says nothing of the kind."""
    found = _COUNTED.match(line)
    return int(found[1] or found[2]) if found else 0


def read_tally() -> Tally | None:
    """Return what is kept; None where nothing is."""
    return Tally(**json.loads(SAVED.read_text())) if SAVED.is_file() else None


def add_to_tally(inputs: Mapping[str, int], failed: list[str]) -> Tally:
    """Add a run to what is kept.

    Args:
        inputs: target -> inputs that the run has tried.
        failed: the targets in which it found something.

    Returns:
        What is kept now.
    """
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    before = read_tally() or Tally({}, {}, today, today)
    tally = Tally(
        dict(sorted((Counter(before.inputs) + Counter(inputs)).items())),
        dict(sorted((Counter(before.findings) + Counter(failed)).items())),
        before.since,
        today,
    )
    SAVED.write_text(json.dumps(asdict(tally), indent=1) + "\n")
    return tally


def describe(tally: Tally) -> str:
    """Return a tally as a table and a sentence, in Markdown."""
    rows = [
        f"| `{target}` | {count:,} | {tally.findings.get(target, 0) or '-'} |"
        for target, count in tally.inputs.items()
    ]
    head = ("| target | inputs tried | runs that ended with a finding |", "| --- | --- | --- |")
    total = f"{sum(tally.inputs.values()):,} inputs in all, from {tally.since} to {tally.until}."
    return "\n".join((*head, *rows, "", total))
