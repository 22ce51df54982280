"""Times an encoder on sentences of many lengths, pass after pass: numpy layers beside what a server does.

Run: python -m tests.bench.lengths [--lengths 24] [--passes 3] [--layers 6] [--width 384] [--rounds 3] [--cold]

What a server does is a run that waits for no compiler, on a graph that was prepared for the shapes that its file
declares, as models are when they are loaded. With `--cold` it was not: the first lengths run in numpy layers, while
the program for all lengths is compiled beside them. Each round opens the graph anew; times are medians of the rounds,
and the two take turns pass by pass. A second round finds the code of the first on disk, unless `KUIPER_CACHE` is empty.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph, TensorSpec
from engine.dtypes import Array
from tests.bench.encoder import WORDS, write_encoder

STEP = 5
"""Tokens between one length and the next."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("lengths", 24), ("passes", 3), ("layers", 6), ("width", 384), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    sentences = list(_sentences(options.lengths))
    with tempfile.TemporaryDirectory() as folder:
        param = write_encoder(Path(folder), options.layers, options.width)
        rounds = [_round(param, sentences, options.passes, options.cold) for _ in range(options.rounds)]
    print("| pass | numpy, ms | server, ms | server / numpy |\n| --- | --- | --- | --- |")
    for number, times in enumerate(zip(*rounds, strict=True), 1):
        plain, served = (median(side) for side in zip(*times, strict=True))
        print(f"| {number} | {plain:.0f} | {served:.0f} | {served / plain:.2f} |")


def _round(param: Path, sentences: list[Array], passes: int, is_cold: bool) -> list[tuple[float, float]]:
    """Return the milliseconds of each pass: of numpy layers, and as a server has it."""
    plain, served = _open(param, "numpy"), _open(param, "native")
    if not is_cold:
        served.prepare([TensorSpec((1, 1), np.dtype(np.int64))])
    times = [(_pass_ms(plain, sentences), _pass_ms(served, sentences)) for _ in range(passes)]
    print(f"{served.compilation}", flush=True)
    return times


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
