"""This engine against other runtimes, in turns, float32, batch 1.

Run: make bench        (or python -m tests.bench [--models NAME …] [--threads N …] [--rounds N] [--save])

Every contender runs in a process of its own that keeps one model, and its outputs are compared with PyTorch's before
it is timed. Tables are printed; build/bench.json has all figures, every layer's among them. With --save they go to
docs/bench/ as well, and a plot with them.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.bench import asides, report
from tests.bench.contenders import BASE, CONTENDERS, Contender, installed
from tests.bench.export import export
from tests.bench.layers import layer_table
from tests.bench.machine import machine
from tests.bench.models import MODELS, Files, Model
from tests.bench.race import race
from tests.bench.results import (
    BUILD,
    SAVED,
    LayerTable,
    Report,
    Result,
    Split,
    Throughput,
    TraceCost,
    to_json,
)
from tests.bench.worker import WorkerError, in_own_process

LAYER_RUNS = 9
TRACE_ROUNDS = 40
BESIDES = "resnet18"
"""The model whose trace, throughput and build are measured too."""


def main() -> None:
    """Run the benchmark, print its tables and write its figures."""
    arguments = parse()
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(
            [MODELS[name] for name in arguments.models],
            [contender for contender in installed() if contender.name in arguments.contenders],
            sorted(set(arguments.threads)),
            arguments.rounds,
            Path(folder),
        )
    write(found, arguments.save)
    print("\n" + report.full(found))
    print(f"\n{perf_counter() - started:.0f} s")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS), metavar="NAME")
    parser.add_argument(
        "--contenders", nargs="+", choices=tuple(CONTENDERS), default=list(CONTENDERS), metavar="NAME"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=20, help="at most; fewer on slow models")
    parser.add_argument("--save", action="store_true", help="write docs/bench/ as well")
    return parser.parse_args()


def run(
    models: Sequence[Model],
    contenders: Sequence[Contender],
    threads: Sequence[int],
    rounds: int,
    folder: Path,
) -> Report:
    """Return all that is measured."""
    results: list[Result] = []
    tables: list[LayerTable] = []
    notes: list[str] = []
    found = Report(machine(), rounds, import_seconds=asides.import_seconds())
    for model in models:
        files = Files(model, folder / model.name)
        _say(f"{model.title}: export")
        in_own_process(export, files)
        for count in threads:
            _say(f"{model.title}: {count} thread{'s'[: count > 1]}")
            results += race(files, contenders, count, rounds)
            tables += _unless_it_fails(notes, in_own_process, layer_table, files, count, LAYER_RUNS)
        if model.name == BESIDES:
            _say(f"{model.title}: trace, throughput, build")
            found = _besides(found, files, contenders, threads, notes)
    notes += [f"{r.model}, {r.contender}, {r.threads} threads: {r.failure}" for r in results if r.failure]
    return replace(found, results=tuple(results), layers=tuple(tables), notes=tuple(notes))


def write(found: Report, is_saved: bool) -> None:
    """Write the figures, and the plot where they are saved."""
    for path in [BUILD, SAVED] if is_saved else [BUILD]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(found))
    if is_saved:
        from tests.bench import plot  # here: its memory would count as that of every runtime's process

        plot.write(found, plot.PLOT)


def _besides(
    found: Report,
    files: Files,
    contenders: Sequence[Contender],
    threads: Sequence[int],
    notes: list[str],
) -> Report:
    traces: list[TraceCost] = []
    for count in threads:
        traces += _unless_it_fails(notes, in_own_process, asides.trace_cost, files, count, TRACE_ROUNDS)
    rates: list[Throughput] = []
    if any(contender.name == BASE for contender in contenders):
        rates = _unless_it_fails(notes, asides.throughput, files)
    splits: list[Split] = _unless_it_fails(notes, in_own_process, asides.split, files)
    return replace(
        found,
        traces=tuple(traces),
        throughput=next(iter(rates), None),
        split=next(iter(splits), None),
    )


def _unless_it_fails(notes: list[str], measure: Callable[..., Any], *arguments: object) -> list[Any]:
    """Return a measurement as a list, empty where it failed, which is noted: the rest of the run goes on."""
    try:
        return [measure(*arguments)]
    except WorkerError as error:
        what = " ".join(getattr(item, "__name__", "") for item in arguments) or measure.__name__
        notes.append(f"{what.strip()}: {error}")
        return []


def _say(text: str) -> None:
    print(f"[{text}]", flush=True)


if __name__ == "__main__":
    main()
