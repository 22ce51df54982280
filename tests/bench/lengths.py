"""Times an encoder on sentences of many lengths, pass after pass: reference layers beside what a server does.

Run: python -m tests.bench.lengths [--lengths 24] [--passes 3] [--layers 6] [--width 384] [--rounds 3] [--cold]
[--precision int8]

What a server does is a run that waits for no compiler, on a graph that was prepared for the shapes that its file
declares, as models are when they are loaded. With `--cold` it was not: the first lengths run in reference layers, while
the program for all lengths is compiled beside them. Each round opens the graph again; times are the processor's, of
all threads, medians of the rounds, and the two take turns pass by pass. A second round finds the code of the first on
disk, unless `KUIPER_CACHE` is empty.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph, TensorSpec
from engine.dtypes import Array
from tests.bench.encoder import WORDS, write_encoder
from tests.golden.rounded_networks import calibrated

STEP = 5
"""Tokens between one length and the next."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("lengths", 24), ("passes", 3), ("layers", 6), ("width", 384), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32")
    options = parser.parse_args()
    sentences = list(_sentences(options.lengths))
    with tempfile.TemporaryDirectory() as folder:
        param = write_encoder(Path(folder), options.layers, options.width)
        graphs = _Graphs(param, options.precision, sentences[-1])
        rounds = [_round(graphs, sentences, options.passes, options.cold) for _ in range(options.rounds)]
    print("| pass | numpy, ms | server, ms | server / numpy |\n| --- | --- | --- | --- |")
    for number, times in enumerate(zip(*rounds, strict=True), 1):
        plain, served = (median(side) for side in zip(*times, strict=True))
        print(f"| {number} | {plain:.0f} | {served:.0f} | {served / plain:.2f} |")


class _Graphs:
    """Opens graphs of an encoder in a precision; in int8, with the ranges of one sentence."""

    def __init__(self, param: Path, precision: str, example: Array) -> None:
        self._param = param
        self._options: dict[str, Any] = {"precision": precision}
        if precision == "int8":
            self._options["quantization"] = calibrated(self._open("numpy", {}), [example])

    def open(self, backend: str) -> RuntimeGraph:
        """Return a graph that runs on a backend, built."""
        return self._open(backend, self._options)

    def _open(self, backend: str, options: dict[str, Any]) -> RuntimeGraph:
        graph = RuntimeGraph(self._param, backend=backend, **options)
        graph.build()
        return graph


def _round(graphs: _Graphs, sentences: list[Array], passes: int, is_cold: bool) -> list[tuple[float, float]]:
    """Return the milliseconds of each pass: of reference layers, and as a server has it."""
    plain, served = graphs.open("numpy"), graphs.open("native")
    if not is_cold:
        served.prepare([TensorSpec((1, 1), np.dtype(np.int64))])
    times = [(_pass_ms(plain, sentences), _pass_ms(served, sentences)) for _ in range(passes)]
    print(f"{served.compilation}", flush=True)
    return times


def _pass_ms(graph: RuntimeGraph, sentences: list[Array]) -> float:
    started = time.process_time()
    for sentence in sentences:
        graph.run([sentence], waits=False)
    return (time.process_time() - started) * 1e3


def _sentences(count: int) -> Iterator[Array]:
    random = np.random.default_rng(0)
    return (random.integers(0, WORDS, (1, STEP * (place + 1))) for place in range(count))


if __name__ == "__main__":
    with threadpool_limits(1):  # as the server has it for runs of one thread
        main()
