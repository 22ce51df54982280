"""Train, measure and export the digit-scenes model: `python models/digit-scenes/train.py`.

Writes everything that stands beside this file but model.toml and the card: the exported graph, labels, samples and
metrics.json. Needs the extra `train` (`pip install -e .[train]`). `--checkpoint FILE` goes on where an earlier run of
the same settings was stopped.
`--processes N` shares each batch among N processes. Training goes on from the weights beside this file; `--fresh`
begins with random ones. `--measure` trains nothing, and measures and exports what the checkpoint holds. Printed digits
need fonts (models/fonts.py names them); `--fonts` says where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from training.batches import SceneBatches, boxes_of  # noqa: E402
from training.command import Training, run_training  # noqa: E402
from training.finish import finish  # noqa: E402
from training.loss import detection_loss  # noqa: E402
from training.progress import Progress, Schedule  # noqa: E402
from training.scene import SceneMaker  # noqa: E402

from tests.golden.networks.yolov5 import STRIDES, YoloV5  # noqa: E402

SEED = 14
SIDE = 416
WIDTH, DEPTH = 0.14, 0.33  # multiples of YOLOv5's channels and repeats; its smallest published width is 0.25
ANCHORS = ((11, 17, 16, 24, 24, 34), (34, 50, 50, 72, 72, 98), (95, 135, 125, 185, 170, 250))
SCHEDULE = Schedule(rate=1.5e-3, steps=12000, warm_up=200, averaged_over=400)
SMALL_SHARE = 0.75  # of the steps, the first, on smaller squares with larger digits
SMALL = (12, 224, (0.085, 0.75))  # scenes of a batch, side, and heights of digits in parts of it
LARGE = (4, SIDE, (0.05, 0.5))


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
    batches = SceneBatches(maker, boxes_of, (SEED + progress.step, progress.rank), progress.processes)
    network = progress.network.train().to(memory_format=torch.channels_last)

    def loss_of(done: float) -> Tensor:
        images, boxes = batches(*(SMALL if done < SMALL_SHARE else LARGE))
        targets = torch.from_numpy(np.concatenate([np.insert(b, 0, i, axis=1) for i, b in enumerate(boxes)]))
        with torch.autocast("cpu", torch.bfloat16):
            heads = network(images.contiguous(memory_format=torch.channels_last))
        return detection_loss([head.float() for head in heads], targets, ANCHORS, STRIDES)

    progress.run(loss_of)


if __name__ == "__main__":
    run_training(__doc__, Training(make_network, SCHEDULE, train, finish, HERE, SIDE))
