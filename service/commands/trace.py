"""`kuiper trace MODEL FILE`: what every layer of a model does, in the terminal."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from engine import LayerTrace, RuntimeGraph, RunTrace, TraceLevel
from service.codec import describe_trace
from service.commands.failure import CommandError
from service.commands.following import follow_run
from service.commands.opening import (
    InputFile,
    Model,
    RunInputs,
    Shapes,
    Threads,
    open_model,
    run_inputs,
    shape_text,
    short_names,
)
from service.commands.output import Json, bar, check_output, console, print_json, table
from service.errors import did_you_mean
from service.telemetry.chrome_trace import draw_layers
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper trace models/digits models/digits/samples/7.png"

_BAR = 16


def run(
    model: Model,
    file: InputFile = None,
    *,
    shape: Shapes = None,
    threads: Threads = 1,
    runs: Annotated[int, typer.Option(min=1, help="Number of runs; the median one is shown.")] = 20,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Log each operator as it runs, on the numpy backend."),
    ] = False,
    chrome: Annotated[
        Path | None,
        typer.Option(help="Write a trace file for ui.perfetto.dev or chrome://tracing.", show_default=False),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="OTHER", help="Show another model side by side.", show_default=False)
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Show candidate kernels, estimated and measured.")
    ] = False,
    layer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The only layer of --why.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Run a model and show the time, shape and backend of every layer.

    Layers fused into another one have no time of their own. A comparison pairs layers by name.
    """
    check_output(chrome)
    if follow:
        graph = open_model(model, threads, "numpy")
        follow_run(graph, run_inputs(graph, file, shape), console())
        return
    with status_line("compiling") as step:
        graphs = [open_model(name, threads) for name in ([model] if compare is None else [model, compare])]
        inputs = run_inputs(graphs[0], file, shape)
        traces = _median_traces(graphs, inputs, runs, step)
    if chrome is not None:
        chrome.write_bytes(orjson.dumps(draw_layers(traces[0])))
    if why:
        rows = list(_candidates(traces[0], layer))
        print_json(rows) if json else _print_candidates(rows, traces[0].total_us)
    elif json:
        shown: list[Any] = [describe_trace(trace) for trace in traces]
        print_json(shown[0] if compare is None else {model: shown[0], compare: shown[1]})
    elif compare is None:
        _print_trace(traces[0], inputs)
    else:
        _print_comparison(*short_names(model, compare), traces)


def _median_traces(
    graphs: list[RuntimeGraph], inputs: RunInputs, runs: int, step: Callable[[str], None]
) -> list[RunTrace]:
    """Run graphs alternately; return of each the trace of the run whose time is the median."""
    for graph in graphs:
        graph.forward(inputs.arrays)  # compiles
    taken: list[list[RunTrace]] = [[] for _ in graphs]
    for done in range(runs):
        step(f"measuring, run {done + 1} of {runs}")
        for graph, traces in zip(graphs, taken, strict=True):
            trace = graph.run(inputs.arrays, trace=TraceLevel.ON).trace
            if trace is not None:
                traces.append(trace)
    return [sorted(traces, key=lambda trace: trace.total_us)[len(traces) // 2] for traces in taken]


def _print_trace(trace: RunTrace, inputs: RunInputs) -> None:
    out = console()
    numbers = ["#", "ms", "%", "GFLOP/s"]
    made = table("#", "layer", "type", "output", "ms", "%", "", "GFLOP/s", "by", numbers=numbers)
    for layer in trace.layers:
        is_timed = layer.fused_into is None
        made.add_row(
            str(layer.index),
            layer.name,
            layer.type,
            shape_text(layer.outputs[0].shape) if layer.outputs else "",
            f"{layer.duration_us / 1e3:.4f}" if is_timed else "",
            f"{100 * layer.share:.1f}" if is_timed else "",
            bar(layer.share, _BAR),
            _rate(layer),
            layer.backend if is_timed else f"in {layer.fused_into}",
        )
    out.print(made)
    out.print(f"total {trace.total_us / 1e3:.4f} ms on {inputs.source}")


def _rate(layer: LayerTrace) -> str:
    """Return billions of floating-point operations per second; a multiply-add counts as two."""
    if not layer.multiply_adds or not layer.duration_us:
        return ""
    return f"{2 * layer.multiply_adds / layer.duration_us / 1e3:.1f}"


def _candidates(trace: RunTrace, name: str | None) -> Iterator[dict[str, Any]]:
    """Yield the layers whose kernels were chosen among several candidates, or the one of a name.

    Raises:
        CommandError: no such layer has candidates.
    """
    layers = [layer for layer in trace.layers if layer.candidates and name in (None, layer.name)]
    if name is not None and not layers:
        known = [layer.name for layer in trace.layers if layer.candidates]
        expected = f"one of {', '.join(known)}{did_you_mean(name, known)}" if known else "the native backend"
        raise CommandError(f"--layer {name}: it has no candidate kernels; expected {expected}")
    for layer in layers:
        yield {
            "name": layer.name,
            "type": layer.type,
            "measured_ms": round(layer.duration_us / 1e3, 4),
            "candidates": [
                {
                    "name": each.name,
                    "estimated_ms": round(each.estimate_us / 1e3, 4),
                    "chosen": each.is_chosen,
                }
                for each in sorted(layer.candidates, key=lambda each: each.estimate_us)
            ],
        }


def _print_candidates(rows: list[dict[str, Any]], total_us: float) -> None:
    numbers = ["estimated ms", "measured ms"]
    made = table("layer", "type", "candidate", "", *numbers, numbers=numbers)
    for row in rows:
        title = [row["name"], row["type"]]
        for each in row["candidates"]:
            measured = f"{row['measured_ms']:.4f}" if each["chosen"] else ""
            mark = "chosen" if each["chosen"] else ""
            made.add_row(*title, each["name"], mark, f"{each['estimated_ms']:.4f}", measured)
            title = ["", ""]
    out = console()
    out.print(made)
    out.print(f"{len(rows)} layers with candidates in a run of {total_us / 1e3:.4f} ms")


def _print_comparison(first: str, second: str, traces: list[RunTrace]) -> None:
    others = {layer.name: layer for layer in traces[1].layers}
    times = [f"{first} ms", f"{second} ms"]
    made = table("layer", "type", *times, "ratio", "", numbers=[*times, "ratio"])
    longest = max((layer.duration_us for trace in traces for layer in trace.layers), default=0) or 1
    for layer in traces[0].layers:
        made.add_row(*_compared(layer, others.pop(layer.name, None), longest))
    for other in others.values():
        made.add_row(other.name, other.type, "", _milliseconds(other), "", f"only in {second}")
    out = console()
    out.print(made)
    totals = [trace.total_us / 1e3 for trace in traces]
    out.print(f"total {totals[0]:.4f} ms and {totals[1]:.4f} ms: {totals[1] / totals[0]:.2f} times as long")


def _compared(layer: LayerTrace, other: LayerTrace | None, longest: float) -> list[str]:
    if other is None:
        return [layer.name, layer.type, _milliseconds(layer), "", "", "only in the first"]
    ratio = f"{other.duration_us / layer.duration_us:.2f}" if layer.duration_us and other.duration_us else ""
    bars = f"{bar(layer.duration_us / longest, _BAR):{_BAR}} {bar(other.duration_us / longest, _BAR)}"
    return [layer.name, layer.type, _milliseconds(layer), _milliseconds(other), ratio, bars.rstrip()]


def _milliseconds(layer: LayerTrace) -> str:
    return "" if layer.fused_into is not None else f"{layer.duration_us / 1e3:.4f}"
