"""This engine against other runtimes, interleaved, batch 1, float32 and what other precisions are asked for.

Run: make bench        (or python -m tests.bench [--models NAME …] [--precision bf16 int8] [--threads N …] [--save])

Every runtime runs in a process of its own that keeps one model, and its outputs are compared with PyTorch's before
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

from tests.bench import report, secondary
from tests.bench.export import export
from tests.bench.interleaving import measure_alternately
from tests.bench.layers import layer_table
from tests.bench.machine import machine
from tests.bench.models import MODELS, BenchModel, ModelFiles
from tests.bench.results import (
    BUILD,
    SAVED,
    BenchReport,
    LayerTable,
    RuntimeResult,
    StartupPhases,
    Throughput,
    TraceCost,
    to_json,
)
from tests.bench.runtimes import BASE, PRECISIONS, RUNTIMES, Runtime, installed, of_precisions
from tests.bench.worker import WorkerError, in_own_process

LAYER_RUNS = 9
TRACE_ROUNDS = 40
SECONDARY_MODEL = "resnet18"
"""The model whose trace, throughput and build are measured too."""


def main() -> None:
    """Run the benchmark, print its tables and write its figures."""
    arguments = parse()
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = run(
            [MODELS[name] for name in arguments.models],
            [runtime for runtime in installed() if runtime.name in _wanted(arguments)],
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
        "--runtimes",
        nargs="+",
        choices=tuple(RUNTIMES),
        metavar="NAME",
        help="default: all of the precisions",
    )
    parser.add_argument(
        "--precision", nargs="+", choices=PRECISIONS, default=[], help="compared beside float32: bf16, int8"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=20, help="at most; fewer on slow models")
    parser.add_argument("--save", action="store_true", help="write docs/bench/ as well")
    return parser.parse_args()


def _wanted(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the runtimes that are asked for."""
    return arguments.runtimes or of_precisions(["f32", *arguments.precision])


def run(
    models: Sequence[BenchModel],
    runtimes: Sequence[Runtime],
    threads: Sequence[int],
    rounds: int,
    folder: Path,
) -> BenchReport:
    """Return all that is measured."""
    results: list[RuntimeResult] = []
    tables: list[LayerTable] = []
    notes: list[str] = []
    found = BenchReport(machine(), rounds, import_seconds=secondary.import_seconds())
    for model in models:
        files = ModelFiles(model, folder / model.name)
        _say(f"{model.title}: export")
        in_own_process(export, files)
        for count in threads:
            _say(f"{model.title}: {count} thread{'s'[: count > 1]}")
            results += measure_alternately(files, runtimes, count, rounds)
            tables += _unless_it_fails(notes, in_own_process, layer_table, files, count, LAYER_RUNS)
        if model.name == SECONDARY_MODEL:
            _say(f"{model.title}: trace, throughput, build")
            found = _secondary(found, files, runtimes, threads, notes)
    notes += [f"{r.model}, {r.runtime}, {r.threads} threads: {r.failure}" for r in results if r.failure]
    return replace(found, results=tuple(results), layers=tuple(tables), notes=tuple(notes))


def write(found: BenchReport, is_saved: bool) -> None:
    """Write the figures, and the plot where they are saved."""
    for path in [BUILD, SAVED] if is_saved else [BUILD]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_json(found))
    if is_saved:
        from tests.bench import plot  # here: its memory would count as that of every runtime's process

        plot.write(found, plot.PLOT)


def _secondary(
    found: BenchReport,
    files: ModelFiles,
    runtimes: Sequence[Runtime],
    threads: Sequence[int],
    notes: list[str],
) -> BenchReport:
    traces: list[TraceCost] = []
    for count in threads:
        traces += _unless_it_fails(notes, in_own_process, secondary.trace_cost, files, count, TRACE_ROUNDS)
    rates: list[Throughput] = []
    if any(runtime.name == BASE for runtime in runtimes):
        rates = _unless_it_fails(notes, secondary.throughput, files)
    splits: list[StartupPhases] = _unless_it_fails(notes, in_own_process, secondary.split, files)
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
