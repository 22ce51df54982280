"""Writes a report of the service's benchmark as Markdown.

Run: python -m tests.bench.service.report [--from FILE]     (prints the tables of docs/bench/service.json, or of FILE)
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.bench.report import table
from tests.bench.service.load import Timings
from tests.bench.service.results import (
    OURS,
    OURS_TWICE,
    SAVED,
    Lead,
    LoadResult,
    Overhead,
    ServiceReport,
    StartResult,
    from_json,
)
from tests.bench.service.speedup import FORM, MODEL

RESPONSES = {"means": "3 numbers", "same": "150,528 numbers"}
"""The model whose overhead is measured -> what it answers."""

COMPARED = (OURS_TWICE, "Triton", "FastAPI", "LitServe", "MLServer")
"""Beginnings of the names of what one process of this server is compared with."""
FIGURES = {"rate": "requests/s", "p50": "median, ms"}
"""What leads compare -> its name and unit."""
_STARTS = ("ready, s", "memory, MB")


def tables(report: ServiceReport) -> str:
    """Return all that documentation shows of a report: what it ran on, loads, leads, starts and overheads."""
    parts = (
        introduction(report),
        loads_table(report.loads),
        absence_line(report.loads),
        leads_part(report.leads),
        starts_table(report.starts),
        "Overhead of the service, median of sequential requests:",
        overheads_table(report.overheads),
    )
    return "\n\n".join(part for part in parts if part)


def introduction(report: ServiceReport) -> str:
    """Return what was measured, on what, and when."""
    machine = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return (
        "Requests per second; in brackets the 99th percentile in milliseconds. "
        f"{report.seconds} s per figure; {machine['processor']}, {machine['cores']} cores, shared with the load "
        f"generator; {report.date} ({machine['versions']}; {versions}). "
        f"Without a server's work, the generator reaches {report.ceiling.per_second:.0f} requests per second."
    )


def loads_table(loads: Sequence[LoadResult]) -> str:
    """Return the table of loads: a row for each model, form and number of connections, a column for each server."""
    servers = list(dict.fromkeys(load.server for load in loads))
    timings = {(load.model, load.form, load.connections, load.server): load.timings for load in loads}
    forms = dict.fromkeys((load.model, load.form) for load in loads)
    counts = sorted({load.connections for load in loads})
    rows = [
        [*form, str(count), *(_shown(timings.get((*form, count, server))) for server in servers)]
        for form in forms
        for count in counts
    ]
    return table(["model", "input", "at once", *servers], rows)


def absence_line(loads: Sequence[LoadResult]) -> str:
    """Return a sentence that names the servers that had no part in a run; empty where all had one."""
    absent = [name for name in COMPARED if not any(load.server.startswith(name) for load in loads)]
    return f"Not in this run: {', '.join(absent)}." if absent else ""


def leads_part(leads: Sequence[Lead]) -> str:
    """Return the table of leads below a sentence that says how they were measured; empty where there are none."""
    if not leads:
        return ""
    rows = [
        [
            one.model,
            str(one.connections),
            one.leader,
            one.server,
            FIGURES[one.figure],
            _number(one.ours),
            _number(one.theirs),
            f"{one.ratio:.2f}",
            f"{one.wanted:g}",
        ]
        for one in leads
    ]
    head = ["model", "at once", "server", "beside", "figure", "the server", "the other", "lead", "target"]
    return f"Measured alternately, with {FORM} input; medians of the rounds:\n\n{table(head, rows)}"


def starts_table(starts: Sequence[StartResult]) -> str:
    """Return the table of starts, a row for each server."""
    found = {(start.server, start.model): start for start in starts}
    models = list(dict.fromkeys(start.model for start in starts))
    rows = [
        [server, *(cell for model in models for cell in _start(found.get((server, model))))]
        for server in dict.fromkeys(start.server for start in starts)
    ]
    return table(["server", *(f"{model}: {what}" for model in models for what in _STARTS)], rows)


def servers_table(report: ServiceReport) -> str:
    """Return the requests per second of each server for one model and input.

    MLServer's worker processes, the slowest, are left out.
    """
    loads = [load for load in report.loads if (load.model, load.form) == (MODEL, FORM)]
    rates = {(load.server, load.connections): f"{load.timings.per_second:,.0f}" for load in loads}
    counts = sorted({load.connections for load in loads})
    names = dict.fromkeys(load.server for load in loads if not load.server.endswith(", workers"))
    several = f"{report.machine['cores']} instances"
    rows = [
        [name.replace("instances", several), *(rates.get((name, count), "") for count in counts)]
        for name in names
    ]
    return table(["server", *(f"{count} at once" for count in counts)], rows)


def scaling_table(report: ServiceReport) -> str:
    """Return the requests per second of one and of two processes with binary input, and their memory."""
    timings = {
        (load.model, load.server, load.connections): load.timings
        for load in report.loads
        if load.form == FORM
    }
    counts = sorted({load.connections for load in report.loads})
    rows = [
        [
            start.model,
            "1" if start.server == OURS else "2",
            *(f"{timings[start.model, start.server, count].per_second:,.0f}" for count in counts),
            f"{timings[start.model, start.server, counts[-1]].p99:.1f}",
            f"{start.loaded_bytes / 1e6:.0f}",
        ]
        for start in report.starts
        if start.server in (OURS, OURS_TWICE)
    ]
    head = ["model", "processes", *(f"requests/s, {count} at once" for count in counts)]
    return table([*head, f"p99 with {counts[-1]}, ms", "memory, MB"], rows)


def overheads_table(overheads: Sequence[Overhead]) -> str:
    """Return the table of what the service adds."""
    rows = [
        [
            RESPONSES[one.model],
            one.form,
            f"{one.forward_ms:.3f}",
            f"{one.request_ms:.3f}",
            f"{one.added_ms:.3f}",
        ]
        for one in overheads
    ]
    return table(["response", "request", "forward, ms", "client waits, ms", "overhead, ms"], rows)


def _start(start: StartResult | None) -> list[str]:
    if start is None:
        return [""] * len(_STARTS)
    return [f"{start.ready_seconds:.1f}", f"{start.loaded_bytes / 1e6:.0f}"]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}"


def _shown(timings: Timings | None) -> str:
    return "" if timings is None else f"{timings.per_second:.0f} ({timings.p99:.1f})"


def main() -> None:
    """Print the tables of a kept run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, default=SAVED, metavar="FILE")
    print(tables(from_json(parser.parse_args().source.read_text())))


if __name__ == "__main__":
    main()
