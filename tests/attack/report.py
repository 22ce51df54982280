"""The table of attacks, which `make attack` prints and docs/explanation/attacks.md shows.

Run: python -m tests.attack.report [--from FILE]     (prints what docs/bench/attacks.json, or FILE, shows)
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.attack.results import SAVED, AttackReport, AttackResult, Latency, from_json

_HEAD = (
    "attack",
    "size",
    "RSS idle/peak/after, MB",
    "livez p50/p99, ms",
    "honest p99 idle/attacked, ms",
    "responses",
    "exceeds",
)


def page(report: AttackReport) -> str:
    """Return all that documentation shows of a report: what it ran on, and its table."""
    machine = report.machine
    exceeded = [result for result in report.results if result.excesses or result.faults]
    count = f"{len(exceeded) or 'None'} of {len(report.results)} attacks exceeded a limit"
    introduction = (
        f"Sizes: {report.scale}. {machine['processor']}, {machine['cores']} cores, shared by server, attacker and "
        f"honest clients; {report.date} ({machine['versions'].partition(',')[0]}). {count}."
    )
    return f"{introduction}\n\n{markdown(report.results)}"


def markdown(results: Sequence[AttackResult]) -> str:
    """Return the table of some attacks."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(of: AttackResult) -> tuple[str, ...]:
    memory = "/".join(f"{size / 1e6:.0f}" for size in (of.rest, of.peak, of.after))
    replies = ", ".join(f"{count:,}x {reply}" for reply, count in of.replies.items()) or "nothing"
    return (
        of.attack,
        f"{of.size:,} {of.unit}",
        memory,
        f"{_milliseconds(of.livez.p50)}/{_milliseconds(of.livez.p99)}",
        f"{_milliseconds(of.idle.p99)}/{_milliseconds(of.honest.p99)}" + _refused(of.honest),
        replies,
        "; ".join((*of.faults, *of.excesses)) or "-",
    )


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.0f}"


def _refused(honest: Latency) -> str:
    """Say how many honest questions got anything but a response."""
    return f" ({honest.refused} of {honest.asked} refused)" if honest.refused else ""


def main() -> None:
    """Print what a kept run shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="file", type=Path, default=SAVED, metavar="FILE")
    print(page(from_json(parser.parse_args().file.read_text())))


if __name__ == "__main__":
    main()
