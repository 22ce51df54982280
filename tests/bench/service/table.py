"""What was measured, as markdown and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.service.generator import Timings


@dataclass(frozen=True, slots=True)
class Start:
    """A server's start and size.

    Attributes:
        server: its name.
        model: the model's name.
        ready_seconds: from its start to its first answer.
        idle_bytes: memory when it was ready.
        loaded_bytes: memory after all requests.
    """

    server: str
    model: str
    ready_seconds: float
    idle_bytes: int
    loaded_bytes: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A server under one kind of load.

    Attributes:
        server: its name.
        model: the model's name.
        form: JSON, binary or image.
        connections: requests at once.
        timings: what it did.
    """

    server: str
    model: str
    form: str
    connections: int
    timings: Timings


def starts_table(starts: Sequence[Start]) -> str:
    """Return the table of starts."""
    rows = ["| model | server | ready, s | memory idle, MB | memory loaded, MB |", "|---|---|---|---|---|"]
    for start in starts:
        sizes = f"{start.idle_bytes / 1e6:.0f} | {start.loaded_bytes / 1e6:.0f}"
        rows.append(f"| {start.model} | {start.server} | {start.ready_seconds:.1f} | {sizes} |")
    return "\n".join(rows)


def cells_table(cells: Sequence[Cell]) -> str:
    """Return the table of loads: requests a second, and in brackets the median and 99th percentile in ms."""
    connections = sorted({cell.connections for cell in cells})
    heads = [f"{count} at once" for count in connections]
    rows = [f"| model | input | server | {' | '.join(heads)} |", "|" + "---|" * (3 + len(heads))]
    found = {(cell.model, cell.form, cell.server, cell.connections): cell.timings for cell in cells}
    lines = dict.fromkeys((cell.model, cell.form, cell.server) for cell in cells)
    # grouped by what is asked, so that servers stand below one another
    order = {key: index for index, key in enumerate(dict.fromkeys((m, f) for m, f, _ in lines))}
    for line in sorted(lines, key=lambda line: order[line[:2]]):
        shown = [_shown(found[*line, count]) for count in connections]
        rows.append(f"| {' | '.join(line)} | {' | '.join(shown)} |")
    return "\n".join(rows)


def _shown(timings: Timings) -> str:
    return f"{timings.per_second:.0f} ({timings.p50:.1f}, {timings.p99:.1f})"
