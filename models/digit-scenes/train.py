"""Train, measure and export the digit-scenes model: `python models/digit-scenes/train.py`.

Writes everything that stands beside this file but model.toml and the card: the exported graph, labels, samples and
metrics.json. Needs the extra `train` (`pip install -e .[train]`). `--checkpoint FILE` goes on where an earlier run of
the same settings was stopped. `--measure` trains nothing, and measures and exports what the checkpoint holds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from training.batches import SceneBatches, boxes_of  # noqa: E402
from training.finish import finish  # noqa: E402
from training.loss import detection_loss  # noqa: E402
from training.progress import Progress  # noqa: E402
from training.scene import SceneMaker  # noqa: E402

from tests.golden.networks.yolov5 import STRIDES, YoloV5  # noqa: E402

SEED = 14
THREADS = 1  # the result does not then depend on the number of cores
SIDE = 320
WIDTH, DEPTH = 0.14, 0.33  # multiples of YOLOv5's channels and repeats; its smallest published width is 0.25
ANCHORS = ((11, 17, 16, 24, 24, 34), (34, 50, 50, 72, 72, 98), (95, 135, 125, 185, 170, 250))
TRAIN_SHARE = 0.8
SMALL_BATCH, BATCH = 16, 8
STEPS = 2900
WARM_UP = 100
PEAK_RATE = 3e-3
SMALL_SHARE = 0.9  # of the steps, the first, on smaller squares with larger digits
SMALL_SIDE = 192
SMALL_HEIGHTS, HEIGHTS = (0.09, 0.6), (0.05, 0.5)


def main() -> None:
    """Parse the command line, train, measure, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    data = load_digits()
    scans, digits = (data.images / 16).astype(np.float32), data.target
    trained = int(TRAIN_SHARE * len(scans))
    progress = Progress(make_network(), PEAK_RATE, options.steps, WARM_UP, options.checkpoint)
    if not options.measure:
        train(progress, SceneMaker(scans[:trained], digits[:trained]))
    network = progress.averaged()
    finish(network, SceneMaker(scans[trained:], digits[trained:]), HERE, SIDE, {"steps": progress.step})


def make_network() -> YoloV5:
    """Return the network with random weights, a digit expected in one cell of two hundred."""
    torch.manual_seed(SEED)
    network = YoloV5(WIDTH, DEPTH, 10, (SIDE, SIDE), anchors=ANCHORS)
    for conv in network.detect.m:
        bias = conv.bias.data.view(3, -1)
        bias[:, 4] = -5.3
        bias[:, 5:] = -2.2
    return network


def train(progress: Progress, maker: SceneMaker) -> None:
    """Train to the end of the schedule."""
    batches = SceneBatches(maker, boxes_of, SEED + progress.step)
    started, total = time.monotonic(), 0.0
    network = progress.network.train().to(memory_format=torch.channels_last)
    for step in progress.steps_left():
        small = step < SMALL_SHARE * progress.total
        images, boxes = batches(
            *((SMALL_BATCH, SMALL_SIDE, SMALL_HEIGHTS) if small else (BATCH, SIDE, HEIGHTS))
        )
        targets = torch.from_numpy(np.concatenate([np.insert(b, 0, i, axis=1) for i, b in enumerate(boxes)]))
        with torch.autocast("cpu", torch.bfloat16):
            heads = network(images.contiguous(memory_format=torch.channels_last))
        loss = detection_loss([head.float() for head in heads], targets, ANCHORS, STRIDES)
        progress.descend(loss)
        total += loss.item()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {total / 50:.4f}, {time.monotonic() - started:.0f} s", flush=True)
            total = 0.0


if __name__ == "__main__":
    main()
