"""Train, measure and export the digit-masks model: `python models/digit-masks/train.py`.

The scenes are those of digit-scenes beside it. Writes everything that stands beside this file but model.toml and the
card: the exported graph, labels, samples and metrics.json. Needs the extra `train` (`pip install -e .[train]`).
`--checkpoint FILE` goes on where an earlier run of the same settings was stopped. `--measure` trains nothing, and
measures and exports what the checkpoint holds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "digit-scenes")]

from masks import finish  # noqa: E402
from training.batches import SceneBatches, strokes_of  # noqa: E402
from training.progress import Progress  # noqa: E402
from training.scene import SceneMaker  # noqa: E402

from tests.golden.networks.unet import UNet  # noqa: E402

SEED = 41
THREADS = 1  # the result does not then depend on the number of cores
SIDE = 320
CHANNELS, DEPTH = 8, 4  # of the first level, which double four times
TRAIN_SHARE = 0.8
STEPS = 1600
WARM_UP = 50
PEAK_RATE = 4e-3
SMALL_SHARE = (
    0.85  # of the steps, the first, on squares of half the side: a convolution learns there what it needs
)
SMALL_SIDE, SMALL_BATCH, BATCH = SIDE // 2, 16, 4
SMALL_HEIGHTS, HEIGHTS = (0.1, 0.95), (0.05, 0.5)


def main() -> None:
    """Parse the command line, train, measure, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    data = load_digits()
    scans, digits = (data.images / 16).astype(np.float32), data.target
    trained = int(TRAIN_SHARE * len(scans))
    progress = Progress(UNet(CHANNELS, 1, DEPTH), PEAK_RATE, options.steps, WARM_UP, options.checkpoint)
    if not options.measure:
        train(progress, SceneMaker(scans[:trained], digits[:trained]))
    finish(
        progress.averaged(),
        SceneMaker(scans[trained:], digits[trained:]),
        HERE,
        SIDE,
        {"steps": progress.step},
    )


def train(progress: Progress, maker: SceneMaker) -> None:
    """Train to the end of the schedule."""
    batches = SceneBatches(maker, strokes_of, SEED + progress.step)
    started, total = time.monotonic(), 0.0
    network = progress.network.train().to(memory_format=torch.channels_last)
    network.mask = nn.Identity()  # the loss takes what the sigmoid would get
    for step in progress.steps_left():
        if step < SMALL_SHARE * progress.total:
            images, strokes = batches(SMALL_BATCH, SMALL_SIDE, SMALL_HEIGHTS)
        else:
            images, strokes = batches(BATCH, SIDE, HEIGHTS)
        wanted = torch.from_numpy(np.stack(strokes))[:, None].float() / 255
        with torch.autocast("cpu", torch.bfloat16):
            scores = network(images.contiguous(memory_format=torch.channels_last))
        loss = mask_loss(scores.float(), wanted)
        progress.descend(loss)
        total += loss.item()
        if step % 50 == 49:
            print(f"step {step + 1}: loss {total / 50:.4f}, {time.monotonic() - started:.0f} s", flush=True)
            total = 0.0


def mask_loss(scores: Tensor, wanted: Tensor) -> Tensor:
    """Cross entropy, and one minus the Dice coefficient of the batch (Milletari et al., "V-Net", 2016)."""
    guessed = scores.sigmoid()
    dice = (2 * (guessed * wanted).sum() + 1) / (guessed.square().sum() + wanted.square().sum() + 1)
    return functional.binary_cross_entropy_with_logits(scores, wanted) + 1 - dice


if __name__ == "__main__":
    main()
