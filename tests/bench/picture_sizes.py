"""Runs on pictures of sizes that a network has not seen: the first, later ones, and those of a program for the size.

Run: python -m tests.bench.picture_sizes [--networks unet] [--params PATH …] [--sizes 10] [--batches 1] [--threads 1]

The file leaves height and width open. A run waits for no compiler, as in a server: the program for all sizes serves,
which was compiled before, and no other one is. Its runs take turns with those of a graph that has a program for the
size; times are the least of `--runs`. The table has each network's largest number of milliseconds that a first run
takes more, the largest ratio to the program for the size, and the median. Heights and widths are
random multiples of 32.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

import numpy as np

from engine import Array, RuntimeGraph, TensorSpec
from engine.compiler.program import programs
from engine.compiler.program.background import finish_background
from tests.golden.network_data import DATA

_STEP = 32


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", nargs="*", default=["resnet18", "mobilenet_v2", "unet", "yolov5_raw"])
    parser.add_argument("--params", nargs="*", type=Path, default=[])
    parser.add_argument("--sides", nargs=2, type=int, default=(160, 480))
    parser.add_argument("--batches", nargs="*", type=int, default=[1])
    for name, value in (("sizes", 10), ("threads", 1), ("runs", 15)):
        parser.add_argument(f"--{name}", type=int, default=value)
    chosen = parser.parse_args(arguments)
    params = [*(DATA / name / f"{name}.pnnx.param" for name in chosen.networks), *chosen.params]
    random = np.random.default_rng(0)
    least, most = (side // _STEP for side in chosen.sides)
    sides = _STEP * random.integers(least, most + 1, (chosen.sizes, 2))
    shapes = [(batch, 3, rows, columns) for batch in chosen.batches for rows, columns in sides.tolist()]
    print("| network | a first run, more ms | to its own program: most | median |")
    print("|---|---|---|---|")
    for param in params:
        firsts, ratios = zip(*_measure(param, shapes, chosen.threads, chosen.runs), strict=True)
        name = param.name.partition(".")[0]
        print(f"| {name} | {max(firsts):.0f} | {max(ratios):.2f} | {median(ratios):.2f} |", flush=True)


def _measure(
    param: Path, shapes: Sequence[tuple[int, ...]], threads: int, runs: int
) -> list[tuple[float, float]]:
    """Return for each shape the milliseconds that its first run takes more, and the ratio of times."""
    shared, own = (RuntimeGraph(param, backend="native", threads=threads, verify="off") for _ in range(2))
    for graph in (shared, own):
        graph.build()
    shared.prepare(_specs(np.zeros((1, 3, 2 * _STEP, 2 * _STEP), np.float32)))
    finish_background()
    _seconds(
        shared, np.zeros((1, 3, 2 * _STEP, 3 * _STEP), np.float32)
    )  # weights are packed at its first run
    found = []
    with patch.object(programs, "compile_in_background", lambda _: None):
        for shape in shapes:
            picture = np.random.default_rng(0).standard_normal(shape, np.float32)
            own.prepare(_specs(picture))
            first = _seconds(shared, picture)
            pairs = [(_seconds(shared, picture), _seconds(own, picture)) for _ in range(runs)]
            ours, exact = (min(times) for times in zip(*pairs, strict=True))
            found.append((1e3 * (first - ours), ours / exact))
    return found


def _specs(picture: Array) -> list[TensorSpec]:
    return [TensorSpec(picture.shape, picture.dtype)]


def _seconds(graph: RuntimeGraph, picture: Array) -> float:
    started = perf_counter()
    graph.run([picture], waits=False)
    return perf_counter() - started


if __name__ == "__main__":
    main()
