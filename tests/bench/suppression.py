"""Measure how long non-maximum suppression takes over the boxes of a large picture.

    python -m tests.bench.suppression [--rounds 50] [--boxes 25200]

The boxes lie about the things of a picture, as a network's do, or anywhere. Times are those of the processor; the least
of all rounds counts, and the median is printed beside it.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from statistics import median
from time import process_time

import numpy as np

from engine import Array
from service.tasks.suppression import suppress

SIDE = 640
CLASSES = 80
THINGS = 50
MOST = 300


def draw_boxes(count: int) -> Mapping[str, tuple[Array, Array, Array]]:
    """Return boxes (count, 4), scores and classes by how the boxes lie."""
    rng = np.random.default_rng(0)
    scores = rng.random(count, np.float32) * np.float32(0.75) + np.float32(0.25)
    classes = rng.integers(0, CLASSES, count)
    sizes = rng.uniform(8, 200, (count, 2))
    centres = rng.uniform(0, SIDE, (count, 2))
    thing = rng.integers(0, THINGS, count)
    noise = rng.normal(0, 4, (2, count, 2))
    about = centres[:THINGS][thing] + noise[0], sizes[:THINGS][thing] * np.exp(noise[1] / 40)
    return {
        f"about {THINGS} things": (_corners(*about), scores, classes[:THINGS][thing]),
        "anywhere": (_corners(centres, sizes), scores, classes),
    }


def _corners(centres: Array, sizes: Array) -> Array:
    return np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=1).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--boxes", type=int, default=25_200)
    arguments = parser.parse_args()
    print(f"{arguments.boxes} boxes, at most {MOST} kept")
    for name, (boxes, scores, classes) in draw_boxes(arguments.boxes).items():
        for kind, compared in ((f"{CLASSES} classes", classes), ("class-agnostic", None)):
            work = partial(suppress, boxes, scores, compared, 0.45, MOST)
            kept, times = len(work()), []
            for _ in range(arguments.rounds):
                start = process_time()
                work()
                times.append((process_time() - start) * 1e3)
            found = f"least {min(times):6.2f} ms  median {median(times):6.2f} ms"
            print(f"{name:16} {kind:15} {found}  {kept:4} kept")


if __name__ == "__main__":
    main()
