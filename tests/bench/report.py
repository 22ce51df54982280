"""Writes a report as Markdown.

Run: python -m tests.bench.report [--from FILE] [--layers MODEL]

Prints the tables of docs/bench/results.json, or of FILE; with --layers every layer of a model. `make figures` puts some
of them into the documentation.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.bench.models import MODELS
from tests.bench.ratios import fastest_peer, geometric_mean, means, to_fastest, to_same_precision
from tests.bench.results import SAVED, BenchReport, LayerTable, RuntimeResult, from_json
from tests.bench.runtimes import BASE, PRECISIONS, of_precisions

SLOWEST = 12


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with its columns lined up."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def summary(report: BenchReport) -> str:
    """Return the tables of times: milliseconds of all runtimes, and this engine's ratios."""
    parts = []
    for threads in report.threads:
        parts.append(
            f"{_threads(threads).capitalize()}, float32, median ms; in the last row the ratio to {BASE}:"
        )
        parts.append(_times(report, threads))
        parts += [_precision(report, threads, precision) for precision in PRECISIONS[1:]]
    return "\n\n".join(part for part in parts if part)


def _precision(report: BenchReport, threads: int, precision: str) -> str:
    """Return the table of a precision: this engine beside the other runtimes in the same, and float32 beside both."""
    found = {name: report.find(name, threads) for name in report.models}
    names = [
        name for name in of_precisions([precision]) if any(name in results for results in found.values())
    ]
    if not names:
        return ""
    ratios = {name: to_same_precision(results, precision) for name, results in found.items()}
    rows = []
    for model, results in found.items():
        ratio = _ratio(ratios[model])
        rows.append([_title(model), *(_time(results, name) for name in ("native", *names)), ratio])
    averaged = [ratio for name, ratio in ratios.items() if ratio is not None and MODELS[name].is_averaged]
    blanks = [""] * (1 + len(names))
    rows.append([f"geometric mean of {len(averaged)}", *blanks, _ratio(geometric_mean(averaged))])
    head = f"{_threads(threads).capitalize()}, {precision}, median ms; the last column is this engine's time over the "
    head += "fastest other runtime's in the same precision:"
    return f"{head}\n\n{table(['model', 'native (f32)', *names, 'ratio'], rows)}"


def _time(results: dict[str, RuntimeResult], name: str) -> str:
    result = results.get(name)
    if result is None:
        return ""
    return "fails" if result.seconds is None else _milliseconds(result.seconds)


def full(report: BenchReport) -> str:
    """Return all tables, of layers the slowest."""
    parts = [
        f"{report.machine['processor']}; {report.machine['versions']}; {_rounds(report)}",
        summary(report),
    ]
    parts += [starts(report), secondary(report)]
    parts += [layers(found, SLOWEST) for found in report.layers]
    parts += [note for note in report.notes if note]
    return "\n\n".join(part for part in parts if part)


def starts(report: BenchReport) -> str:
    """Return the table of what it takes to be ready, and how exact the outputs are; of the fewest threads."""
    rows = []
    for name in report.models:
        for result in report.find(name, report.threads[0]).values():
            if result.start is not None:
                start = result.start
                peak = f"{start.peak_bytes / 2**20:.0f}" if start.peak_bytes else ""
                rows.append(
                    [
                        _title(name),
                        result.runtime,
                        _milliseconds(start.load_seconds),
                        _milliseconds(start.build_seconds),
                        peak,
                        f"{start.error:.0e}",
                    ]
                )
    head = ["model", "runtime", "load ms", "to first response ms", "peak MiB", "error"]
    return table(head, rows) if rows else ""


def secondary(report: BenchReport) -> str:
    """Return the figures besides times of models, one a line."""
    lines = [
        f"- Trace on against off, {_title(cost.model)}, {_threads(cost.threads)}: {cost.overhead:+.1%}."
        for cost in report.traces
    ]
    if (rates := report.throughput) is not None:
        lines.append(
            f"- Two workers with one thread each, {_title(rates.model)}: {rates.native:.1f} requests per second over "
            f"one graph, {rates.base:.1f} over two {BASE} sessions: {rates.native / rates.base:.2f}x."
        )
    if (build := report.split) is not None:
        lines.append(
            f"- From files to ready, {_title(build.model)}: read {build.read_seconds:.3f} s, bind "
            f"{build.bind_seconds:.3f} s, plan, pack and compile {build.compile_seconds:.2f} s, none of it kept before "
            f"(import of the compiler {build.import_seconds:.2f} s)."
        )
    memory = report.find("resnet18", 1)
    both = [memory[name].start for name in ("native", BASE) if name in memory]
    peaks = [start.peak_bytes for start in both if start is not None and start.peak_bytes]
    if len(peaks) == 2:
        lines.append(
            f"- Peak memory, ResNet18: {peaks[0] / 2**20:.0f} MiB; {BASE} {peaks[1] / 2**20:.0f} MiB."
        )
    if report.import_seconds is not None:
        lines.append(f"- Import of the engine, numpy included: {report.import_seconds:.2f} s.")
    return "\n".join(lines)


def layers(found: LayerTable, most: int | None = None) -> str:
    """Return the table of layers in execution order, only the slowest where there are more than `most`."""
    kept = sorted(found.layers, key=lambda layer: layer.seconds, reverse=True)[:most]
    total = sum(layer.seconds for layer in found.layers)
    rows = [
        [
            layer.name,
            layer.type + (f" +{layer.fused}" if layer.fused else ""),
            layer.backend,
            "x".join(map(str, layer.shape)),
            f"{layer.seconds * 1e3:.3f}",
            f"{layer.seconds / total:.1%}",
            f"{layer.gflops:.0f}" if layer.gflops else "",
            f"{layer.share:.0%}" if layer.gflops else "",
        ]
        for layer in found.layers
        if layer in kept
    ]
    head = ["layer", "type +fused", "backend", "output", "ms", "of all", "GFLOP/s", "of peak"]
    kind = (
        f"the {len(rows)} slowest of {len(found.layers)} layers"
        if len(rows) < len(found.layers)
        else "all layers"
    )
    title = (
        f"{_title(found.model)}, {_threads(found.threads)}, {kind}; machine's peak {found.peak_gflops:.0f} GFLOP/s; "
        "operations as of direct convolution, which Winograd's saves on:"
    )
    return f"{title}\n\n{table(head, rows)}"


def _times(report: BenchReport, threads: int) -> str:
    names = [
        name for name in of_precisions(["f32"]) if any(name in report.find(m, threads) for m in report.models)
    ]
    rows = []
    for model in report.models:
        results = report.find(model, threads)
        best, ratio = fastest_peer(results), to_fastest(results, "native")
        last = f"{best.runtime}, {ratio:.2f}" if best is not None and ratio is not None else ""
        rows.append([_title(model), *(_time(results, name) for name in names), last])
    mean = {name: means(report, threads, name) for name in names}
    averaged = [_ratio(mean[name][0]) for name in names]
    count = sum(MODELS[name].is_averaged for name in report.models)
    rows.append(
        [
            f"geometric mean of {count}, transformers aside",
            *averaged,
            _ratio(mean.get("native", (None, None))[1]),
        ]
    )
    return table(["model", *names, "fastest peer, native's ratio to it"], rows)


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.01 else f"{seconds * 1e3:.1f}"


def _rounds(report: BenchReport) -> str:
    fewest = report.fewest_rounds
    return f"{report.rounds} rounds" + (
        f" ({fewest} of the slowest models)" if fewest < report.rounds else ""
    )


def _threads(count: int) -> str:
    return {1: "one thread", 2: "two threads"}.get(count, f"{count} threads")


def _title(model: str) -> str:
    return MODELS[model].title


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, default=SAVED, metavar="FILE")
    parser.add_argument("--layers", choices=tuple(MODELS))
    arguments = parser.parse_args()
    report = from_json(arguments.source.read_text())
    if arguments.layers:
        print("\n\n".join(layers(found) for found in report.layers if found.model == arguments.layers))
    else:
        print(full(report))


if __name__ == "__main__":
    main()
