"""Train, measure and export the digit-masks model: `python models/digit-masks/train.py`.

The scenes are those of digit-scenes beside it. Writes everything that stands beside this file but model.toml and the
card: the exported graph, labels, samples and metrics.json. Needs the extra `train` (`pip install -e .[train]`).
`--checkpoint FILE` goes on where an earlier run of the same settings was stopped. `--processes N` shares
each batch among N processes. Training goes on from the weights beside this file; `--fresh` begins with random ones.
`--measure` trains nothing, and measures and exports what the checkpoint holds. Printed digits need fonts
(models/fonts.py names them); `--fonts` says where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE.parent / "digit-scenes")]

from masks import finish  # noqa: E402
from training.batches import SceneBatches, strokes_of  # noqa: E402
from training.command import Training, run_training  # noqa: E402
from training.progress import Progress, Schedule  # noqa: E402
from training.scene import SceneMaker  # noqa: E402

from tests.golden.networks.unet import UNet  # noqa: E402

SEED = 41
SIDE = 320
CHANNELS, DEPTH = 8, 4  # of the first level, which double four times
SCHEDULE = Schedule(rate=2e-3, steps=4000, warm_up=100, averaged_over=200)
SMALL_SHARE = (
    0.85  # of the steps, the first, on squares of half the side: a convolution learns there what it needs
)
SMALL = (16, SIDE // 2, (0.1, 0.95))  # scenes of a batch, side, and heights of digits in parts of it
LARGE = (4, SIDE, (0.05, 0.5))


def make_network() -> UNet:
    """Return the network with random weights."""
    torch.manual_seed(SEED)
    return UNet(CHANNELS, 1, DEPTH)


def train(progress: Progress, maker: SceneMaker) -> None:
    """Train to the end of the schedule."""
    batches = SceneBatches(maker, strokes_of, (SEED + progress.step, progress.rank), progress.processes)
    network = progress.network.train().to(memory_format=torch.channels_last)
    network.mask = nn.Identity()  # the loss takes what the sigmoid would get

    def loss_of(done: float) -> Tensor:
        images, strokes = batches(*(SMALL if done < SMALL_SHARE else LARGE))
        wanted = torch.from_numpy(np.stack(strokes))[:, None].float() / 255
        with torch.autocast("cpu", torch.bfloat16):
            scores = network(images.contiguous(memory_format=torch.channels_last))
        return mask_loss(scores.float(), wanted)

    progress.run(loss_of)


def mask_loss(scores: Tensor, wanted: Tensor) -> Tensor:
    """Cross entropy, and one minus the Dice coefficient of the batch (Milletari et al., "V-Net", 2016)."""
    guessed = scores.sigmoid()
    dice = (2 * (guessed * wanted).sum() + 1) / (guessed.square().sum() + wanted.square().sum() + 1)
    return functional.binary_cross_entropy_with_logits(scores, wanted) + 1 - dice


if __name__ == "__main__":
    run_training(__doc__, Training(make_network, SCHEDULE, train, finish, HERE, SIDE))
