"""`kuiper bench MODEL`: latency and throughput over threads and batch sizes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from engine import Array, KuiperError, RuntimeGraph
from service.commands.failure import CommandError, CommandUsageError
from service.commands.opening import Model, Shapes, open_model, parse_shape, random_inputs
from service.commands.output import Json, console, print_json, table
from service.config.machine import this_machine
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper bench models/digits --batch 1,8 --seconds 0.2"

_LEAST_RUNS = 5
_ROUNDS = 3
"""Measurements of each, alternately, so that what else the machine does falls on all of them."""

Forward = Callable[[list[Array]], Any]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times of runs of one kind.

    Attributes:
        runtime: what ran the model: `kuiper` or `onnxruntime`.
        threads: threads of a run.
        batch: rows of a run.
        median_ms: milliseconds of the median run.
        p90_ms: milliseconds that nine runs of ten take at most.
        rows_per_second: rows that one run after the other gets through, by the median.
        runs: runs that were timed.
    """

    runtime: str
    threads: int
    batch: int
    median_ms: float
    p90_ms: float
    rows_per_second: float
    runs: int


class _Contender:
    """A runtime with some threads, on a batch of some size, and the times of its runs."""

    def __init__(self, runtime: str, threads: int, inputs: list[Array], forward: Forward) -> None:
        self.runtime, self.threads, self.inputs, self._forward = runtime, threads, inputs, forward
        self.times: list[float] = []
        forward(inputs)  # compiles

    def measure(self, seconds: float) -> None:
        """Run for some seconds."""
        end = time.perf_counter() + seconds
        runs = 0
        while runs < _LEAST_RUNS or time.perf_counter() < end:
            began = time.perf_counter()
            self._forward(self.inputs)
            self.times.append(time.perf_counter() - began)
            runs += 1

    def result(self) -> Measurement:
        """Return what was measured."""
        median, p90 = np.percentile(self.times, [50, 90])
        batch = self.inputs[0].shape[0] if self.inputs and self.inputs[0].ndim else 1
        rate = batch / float(median)
        return Measurement(
            self.runtime, self.threads, batch, float(median) * 1e3, float(p90) * 1e3, rate, len(self.times)
        )


def run(
    model: Model,
    *,
    threads: Annotated[
        str | None,
        typer.Option(help="Numbers of threads, as 1,2; default: 1 and all cores.", show_default=False),
    ] = None,
    batch: Annotated[
        str,
        typer.Option(help="Batch sizes, as 1,4,16; they need a dynamic first dimension."),
    ] = "1,4,8",
    shape: Shapes = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Duration of each measurement.")] = 1.0,
    onnx: Annotated[
        Path | None,
        typer.Option(help="The same model as an ONNX file, to compare with onnxruntime.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Measure the latency and the rows per second of sequential runs.

    Inputs are random. Times exclude the server and its queue.
    """
    cores = this_machine().cpus
    counts = [1, cores] if threads is None else _numbers("--threads", threads)
    batches = _numbers("--batch", batch)
    graphs = {count: open_model(model, count) for count in dict.fromkeys(counts)}
    shapes = [parse_shape(text) for text in shape or ()]
    with status_line("compiling") as step:
        contenders = [
            contender
            for count, graph in graphs.items()
            for rows in batches
            for contender in _contenders(graph, count, _inputs(graph, shapes, rows), onnx)
        ]
        _measure(contenders, seconds, step)
    results = [contender.result() for contender in contenders]
    if json:
        print_json([asdict(result) for result in results])
    else:
        _print(results)


def _contenders(
    graph: RuntimeGraph, threads: int, inputs: list[Array], onnx: Path | None
) -> list[_Contender]:
    ours = _Contender("kuiper", threads, inputs, graph.forward)
    return (
        [ours]
        if onnx is None
        else [ours, _Contender("onnxruntime", threads, inputs, _onnx_forward(onnx, threads))]
    )


def _measure(contenders: Sequence[_Contender], seconds: float, step: Callable[[str], None]) -> None:
    for done, contender in enumerate(list(contenders) * _ROUNDS):
        step(f"measuring, {done + 1} of {_ROUNDS * len(contenders)}")
        contender.measure(seconds / _ROUNDS)


def _inputs(graph: RuntimeGraph, shapes: list[tuple[int, ...]], rows: int) -> list[Array]:
    """Return random inputs of so many rows.

    Raises:
        CommandError: the model does not take so many.
    """
    first = random_inputs(graph, shapes)
    if all(array.ndim and array.shape[0] == rows for array in first.arrays):
        return first.arrays
    try:
        return random_inputs(graph, [(rows, *array.shape[1:]) for array in first.arrays]).arrays
    except KuiperError as error:
        raise CommandError(f"--batch {rows}: the model does not take so many rows: {error}") from error


def _onnx_forward(path: Path, threads: int) -> Forward:
    """Return what runs an ONNX file.

    Raises:
        CommandError: onnxruntime is not installed, or cannot read the file.
    """
    if find_spec("onnxruntime") is None:
        raise CommandError("--onnx: onnxruntime is not installed; pip install onnxruntime")
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no class of their own
        raise CommandError(f"{path}: onnxruntime cannot read it: {error}") from error
    names = [port.name for port in session.get_inputs()]

    def forward(inputs: list[Array]) -> Any:
        try:
            return session.run(None, dict(zip(names, inputs, strict=True)))
        except Exception as error:  # as above
            raise CommandError(f"{path}: does not run on the inputs of the other model: {error}") from error

    return forward


def _numbers(name: str, text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if any(number < 1 for number in numbers):
        raise CommandUsageError(f"{name} {text}: expected whole numbers from 1, with commas between, as 1,4")
    return list(dict.fromkeys(numbers))


def _print(results: Sequence[Measurement]) -> None:
    columns = ["threads", "rows", "median ms", "p90 ms", "rows/s", "runs"]
    rival = {(one.threads, one.batch): one for one in results if one.runtime != "kuiper"}
    heads = ["runtime", *columns, *(["of onnxruntime's time"] if rival else [])]
    made = table(*heads, numbers=heads[1:])
    for one in results:
        other = rival.get((one.threads, one.batch))
        ratio = "" if other is None or other is one else f"{one.median_ms / other.median_ms:.2f}"
        made.add_row(
            one.runtime,
            str(one.threads),
            str(one.batch),
            f"{one.median_ms:.3f}",
            f"{one.p90_ms:.3f}",
            f"{one.rows_per_second:,.0f}",
            str(one.runs),
            *([ratio] if rival else []),
        )
    console().print(made)
