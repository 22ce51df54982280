"""Measure how long a large JPEG takes to become what a model takes, compared with its decoding by Pillow alone.

    python -m tests.bench.pictures [--rounds 5]
    python -m tests.bench.pictures --memory 200

The picture has 24 megapixels and is drawn. Each way is measured in turn, round by round; the least time counts.
With `--memory` so many pictures are prepared one after the other, and the memory of the process is printed after the
first tenth of them, and after the last.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from service.config.image_config import ImageConfig
from service.decoding import DECODERS
from service.images.preparation import ImageInput, open_images, prepare

SIZE = (6000, 4000)
TARGET = ImageInput(1, True, 640, 640, np.dtype(np.float32))
LETTERBOX: dict[str, Any] = {"resize": "fit", "pad": 114}
WAYS: dict[str, dict[str, Any]] = {
    "Pillow's filter": LETTERBOX,
    "Pillow's filter, no drafts": LETTERBOX | {"draft": False},
    "OpenCV's filter": LETTERBOX | {"resize_as": "opencv"},
    "PyTorch's filter": LETTERBOX | {"resize_as": "torch"},
}
LIMIT = 60.0


def draw_jpeg() -> bytes:
    """Return a JPEG of 24 megapixels with shapes and noise."""
    rng = np.random.default_rng(0)
    shapes = Image.fromarray(rng.integers(0, 256, (150, 200, 3), np.uint8)).resize(
        SIZE, Image.Resampling.BICUBIC
    )
    grain = rng.integers(-12, 13, (SIZE[1], SIZE[0], 1)).astype(np.int16)
    target = BytesIO()
    levels = (np.asarray(shapes, np.int16) + grain).clip(0, 255).astype(np.uint8)
    Image.fromarray(levels).save(target, "JPEG", quality=90)
    return target.getvalue()


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def make(data: bytes, config: ImageConfig) -> None:
    prepare(open_images([data], 1 << 30), config, TARGET, LIMIT)


def measure(data: bytes, rounds: int) -> dict[str, float]:
    """Return the least seconds of each way; that of Pillow alone is called `decoding`."""
    ways: dict[str, Callable[[], object]] = {"decoding": lambda: Image.open(BytesIO(data)).load()}
    ways |= {name: partial(make, data, ImageConfig.model_validate(keys)) for name, keys in WAYS.items()}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, work in ways.items():
            best[name] = min(best[name], seconds(work))
    return best


def resident() -> float:
    """Return the megabytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def watch_memory(data: bytes, count: int) -> None:
    """Prepare pictures of every way in turn, and print the memory."""
    configs = [ImageConfig.model_validate(keys) for keys in WAYS.values()]
    for number in range(1, count + 1):
        make(data, configs[number % len(configs)])
        if number in (max(1, count // 10), count):
            print(f"after {number:4} pictures {resident():8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, metavar="PICTURES")
    arguments = parser.parse_args()
    if arguments.memory is not None:
        DECODERS.call(lambda: watch_memory(draw_jpeg(), arguments.memory))
        DECODERS.close()
        return
    best = DECODERS.call(lambda: measure(draw_jpeg(), arguments.rounds))
    decoding = best.pop("decoding")
    print(f"{'decoding by Pillow alone':32} {decoding * 1e3:7.1f} ms")
    for name, value in best.items():
        print(f"{name:32} {value * 1e3:7.1f} ms  {value / decoding:5.2f} x")
    DECODERS.close()


if __name__ == "__main__":
    main()
