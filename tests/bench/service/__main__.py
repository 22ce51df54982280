"""This server against others on the same weights, machine and client, in one run.

Run: make bench-service      (or python -m tests.bench.service [--seconds N] [--json FILE])

Every server has as many workers as there are cores, each with one thread inside a run.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tests.bench.service.contenders import FORMS, Contender, contenders, post
from tests.bench.service.generator import Generator, Timings
from tests.bench.service.lead import leads, leads_line, shortfalls
from tests.bench.service.models import Model, make_models
from tests.bench.service.overhead import measure_overhead, overhead_table, too_slow
from tests.bench.service.server import Server, free_port
from tests.bench.service.table import Cell, Start, cells_table, starts_table

CONNECTIONS = (1, 4, 16)
SETTLE_SECONDS = 6.0
"""Seconds of load before the first figure: whatever a server prepares when it is first asked is prepared then."""
CLOSE = 1e-3
"""Most difference of an answer from PyTorch's, relative to the largest score."""


def main() -> int:
    """Measure, print the tables and write the figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds for each figure")
    parser.add_argument("--environments", type=Path, default=Path(".venv-bench"), help="of the other servers")
    parser.add_argument("--json", type=Path, default=Path("bench-results/service.json"))
    parser.add_argument("--models", nargs="*", default=["digits", "resnet18"])
    parser.add_argument("--servers", nargs="*", help="beginnings of names; all by default")
    arguments = parser.parse_args()
    models = make_models(arguments.environments.resolve() / "models")
    models = [model for model in models if model.name in arguments.models]
    chosen = tuple(arguments.servers or ("",))
    servers = [one for one in contenders(arguments.environments.resolve()) if one.name.startswith(chosen)]
    cores = len(os.sched_getaffinity(0))
    ceiling = _ceiling(models[0], arguments.seconds)
    print(
        f"{cores} cores; the generator alone makes {ceiling.per_second:.0f} requests a second\n", flush=True
    )
    starts, cells = _measure(models, servers, cores, arguments.seconds)
    overheads = measure_overhead(arguments.seconds)
    ahead = leads(cells)
    tables = (cells_table(cells), leads_line(ahead), starts_table(starts), overhead_table(overheads))
    print(*filter(None, tables), sep="\n\n")
    figures = {
        "cores": cores,
        "generator_per_second": ceiling.per_second,
        "loads": [asdict(cell) for cell in cells],
        "leads": ahead,
        "starts": [asdict(start) for start in starts],
        "overheads": [asdict(one) | {"added_ms": one.added_ms} for one in overheads],
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    missed = [*shortfalls(ahead), *too_slow(overheads)]
    print(*missed, sep="\n")
    return 1 if missed else 0


def _measure(
    models: list[Model], servers: list[Contender], cores: int, seconds: float
) -> tuple[list[Start], list[Cell]]:
    starts: list[Start] = []
    cells: list[Cell] = []
    for model in models:
        for contender in servers:
            with (
                tempfile.TemporaryDirectory() as scratch,
                contender.start(model, Path(scratch), cores) as server,
            ):
                idle = server.memory()
                settle = Generator(server.url, contender.ask(model, "binary"), max(CONNECTIONS))
                settle.measure(SETTLE_SECONDS)
                for form in FORMS:
                    cells.extend(_load(contender, model, form, server.url, seconds))
                figures = (server.ready_seconds, idle, server.memory())
                starts.append(Start(contender.name, model.name, *figures))
    return starts, cells


def _load(contender: Contender, model: Model, form: str, url: str, seconds: float) -> Iterator[Cell]:
    request = contender.ask(model, form)
    for connections in CONNECTIONS:
        timings, answer = Generator(url, request, connections).measure(seconds)
        scores = contender.read(answer)
        expected = (model.of_picture if form == "image" else model.scores).ravel()
        if np.abs(scores - expected).max() > CLOSE * np.abs(expected).max():
            raise ValueError(f"{contender.name} answers {model.name} by {form} otherwise than PyTorch")
        cell = Cell(contender.name, model.name, form, connections, timings)
        print(f"{model.name}, {form}, {contender.name}, {connections} at once: {timings}", flush=True)
        yield cell


def _ceiling(model: Model, seconds: float) -> Timings:
    """Return what the generator makes of a server that does nothing."""
    port = free_port()
    request = post("/", model.array.tobytes(), {})
    with Server([sys.executable, "-m", "tests.bench.service.echo", str(port)], port, "/") as server:
        return Generator(server.url, request, max(CONNECTIONS)).measure(seconds)[0]


if __name__ == "__main__":
    sys.exit(main())
