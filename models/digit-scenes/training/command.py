"""What the training scripts of this folder and of digit-masks have in common: their command line, and the split."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fonts import FOLDERS, draw_glyphs
from sklearn.datasets import load_digits
from torch import distributed, multiprocessing, nn

from .batches import SceneBatches, boxes_of
from .exported import restore
from .progress import Progress, Schedule
from .scene import HEIGHTS, SceneMaker

SEED = 5
PRINTED = 6000  # printed digits to choose from
STATISTICS = 48  # scenes that batch norms take their statistics from where weights were exported
THREADS = 1  # the result does not then depend on the number of cores
TRAIN_SHARE = 0.8  # of the scans, the first; the others are held out

Train = Callable[[Progress, SceneMaker], None]
Finish = Callable[[nn.Module, SceneMaker, dict[str, Any], Path, int], None]


class Training(NamedTuple):
    """A network, and how it is trained.

    Attributes:
        make_network: returns it with random weights.
        schedule: of the training; `--steps` changes its length.
        train: trains with a maker of scenes.
        finish: measures and exports the network, given a maker of scenes of held-out digits, what metrics.json is to
            say of the training, the folder and the side.
        folder: where the exported graph is, and goes.
        side: of the square that the network takes.
    """

    make_network: Callable[[], nn.Module]
    schedule: Schedule
    train: Train
    finish: Finish
    folder: Path
    side: int


def run_training(document: str | None, training: Training) -> None:
    """Parse the command line, train, measure, and write the files; `document` is what `--help` says."""
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=training.schedule.steps)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--fonts", type=Path, nargs="+", default=list(FOLDERS), metavar="FOLDER")
    options = parser.parse_args()
    glyphs = draw_glyphs(options.fonts, PRINTED, np.random.default_rng(SEED))
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(
            _run, (training, options, glyphs, folder), options.processes, start_method="fork"
        )


def _run(
    rank: int, training: Training, options: argparse.Namespace, glyphs: list[np.ndarray], folder: str
) -> None:
    torch.set_num_threads(THREADS)
    if options.processes > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=options.processes
        )
    data = load_digits()
    scans, digits = (data.images / 16).astype(np.float32), data.target
    count = int(TRAIN_SHARE * len(scans))
    schedule = training.schedule._replace(steps=options.steps)
    maker = SceneMaker(scans[:count], digits[:count], glyphs)
    network = training.make_network()
    if not options.fresh:
        batches = SceneBatches(maker, boxes_of, (SEED, 0), 1)
        restore(network, training.folder, batches(STATISTICS, training.side, HEIGHTS)[0])
    progress = Progress(network, schedule, options.checkpoint)
    if not options.measure:
        training.train(progress, maker)
    if rank == 0:
        said = {"fresh": options.fresh, "steps": progress.step, "processes": options.processes}
        held_out = SceneMaker(scans[count:], digits[count:])
        training.finish(progress.averaged(), held_out, said, training.folder, training.side)
