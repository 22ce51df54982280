"""Times an encoder on sentences of many lengths, pass after pass: numpy layers beside what a server does.

Run: python -m tests.bench.lengths [--lengths 24] [--passes 3] [--layers 2] [--width 128]

What a server does is a run that waits for no compiler: lengths that come again are compiled beside the runs. The last
row is a pass when nothing is left to compile.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph
from engine.dtypes import Array
from tests.bench.encoder import WORDS, write_encoder

STEP = 5
"""Tokens between one length and the next."""
MOST_SECONDS = 300.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("lengths", 24), ("passes", 3), ("layers", 2), ("width", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    sentences = list(_sentences(options.lengths))
    with tempfile.TemporaryDirectory() as folder:
        param = write_encoder(Path(folder), options.layers, options.width)
        plain, served = _open(param, "numpy"), _open(param, "native")
        print("| pass | numpy, ms | server, ms | compiled | waiting |\n| --- | --- | --- | --- | --- |")
        for number in range(1, options.passes + 1):
            _print_row(str(number), plain, served, sentences)
        until = time.monotonic() + MOST_SECONDS
        while served.compilation.waiting and time.monotonic() < until:
            time.sleep(0.05)
        _print_row("when all are compiled", plain, served, sentences)


def _print_row(name: str, plain: RuntimeGraph, served: RuntimeGraph, sentences: list[Array]) -> None:
    times = [_pass_ms(graph, sentences) for graph in (plain, served)]
    state = served.compilation
    print(f"| {name} | {times[0]:.0f} | {times[1]:.0f} | {state.compiled} | {state.waiting} |", flush=True)


def _pass_ms(graph: RuntimeGraph, sentences: list[Array]) -> float:
    started = time.perf_counter()
    for sentence in sentences:
        graph.run([sentence], waits=False)
    return (time.perf_counter() - started) * 1e3


def _open(param: Path, backend: str) -> RuntimeGraph:
    graph = RuntimeGraph(param, backend=backend)
    graph.build()
    return graph


def _sentences(count: int) -> Iterator[Array]:
    random = np.random.default_rng(0)
    return (random.integers(0, WORDS, (1, STEP * (place + 1))) for place in range(count))


if __name__ == "__main__":
    with threadpool_limits(1):  # as the server has it for runs of one thread
        main()
