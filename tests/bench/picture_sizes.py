"""Times a convolutional network on pictures of several sizes, pass after pass: reference layers beside a server's runs.

Run: python -m tests.bench.picture_sizes [--sizes 7] [--passes 12] [--rounds 3] [--precision f32] [--kept]

A run waits for no compiler, as in a server: reference layers run until the program for its size is compiled.
Each round opens the graph again and finds no compiled code, unless `--kept` is given; the two take turns picture by
picture, and a round's pass is the sum over its pictures. Times are the least and the median of the rounds. The columns
of the processor's time are those of the thread that runs, which show what it does itself where the machine is busy.
"""

import argparse
import os
from collections.abc import Iterator
from statistics import median
from time import perf_counter, thread_time

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph
from engine.dtypes import Array
from tests.golden.network_data import DATA

NETWORK = "unet"
STEP = 16
"""Rows and columns are multiples of it."""
Times = tuple[float, float, float, float]
"""Milliseconds of a pass: of numpy and of the server by the clock, and the same by the processor's time."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in (("sizes", 7), ("passes", 12), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--kept", action="store_true", help="find code that was compiled earlier")
    options = parser.parse_args()
    if not options.kept:
        os.environ["KUIPER_CACHE"] = ""
    pictures = list(_pictures(options.sizes))
    rounds = [_round(pictures, options.passes, options.precision) for _ in range(options.rounds)]
    print("| pass | numpy, ms | server, ms | server / numpy | processor: numpy, ms | server, ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for number, times in enumerate(zip(*rounds, strict=True), 1):
        plain, served, plain_busy, served_busy = (
            f"{min(side):.0f} ({median(side):.0f})" for side in zip(*times, strict=True)
        )
        ratio = median(one[1] / one[0] for one in times)
        print(f"| {number} | {plain} | {served} | {ratio:.2f} | {plain_busy} | {served_busy} |")


def _round(pictures: list[Array], passes: int, precision: str) -> list[Times]:
    """Return the times of each pass."""
    plain, served = _open("numpy", "f32"), _open("native", precision)
    times = [_pass(plain, served, pictures) for _ in range(passes)]
    print(f"{served.compilation}", flush=True)
    return times


def _pass(plain: RuntimeGraph, served: RuntimeGraph, pictures: list[Array]) -> Times:
    sums = [0.0, 0.0, 0.0, 0.0]
    for picture in pictures:
        for place, graph in enumerate((plain, served)):
            started, busy = perf_counter(), thread_time()
            graph.run([picture], waits=False)
            sums[place] += (perf_counter() - started) * 1e3
            sums[2 + place] += (thread_time() - busy) * 1e3
    return (sums[0], sums[1], sums[2], sums[3])


def _open(backend: str, precision: str) -> RuntimeGraph:
    graph = RuntimeGraph(DATA / NETWORK / f"{NETWORK}.pnnx.param", backend=backend, precision=precision)
    graph.build()
    return graph


def _pictures(count: int) -> Iterator[Array]:
    random = np.random.default_rng(0)
    for _ in range(count):
        rows, columns = (int(extent) // STEP * STEP for extent in random.integers(480, 800, 2))
        yield random.standard_normal((1, 3, rows, columns)).astype(np.float32)


if __name__ == "__main__":
    with threadpool_limits(1):  # as the server has it for runs of one thread
        main()
