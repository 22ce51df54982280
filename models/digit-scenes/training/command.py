"""What the training scripts of this folder and of digit-masks have in common: their command line, and the split."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import distributed, multiprocessing, nn

from .progress import Progress, Schedule
from .scene import SceneMaker

THREADS = 1  # the result does not then depend on the number of cores
TRAIN_SHARE = 0.8  # of the scans, the first; the others are held out

Train = Callable[[Progress, np.ndarray, np.ndarray], None]
Finish = Callable[[nn.Module, SceneMaker, dict[str, Any]], None]


class Training(NamedTuple):
    """A network, and how it is trained.

    Attributes:
        make_network: returns it with random weights.
        schedule: of the training; `--steps` changes its length.
        train: trains with scans (n, 8, 8) of values 0 to 1, and the digits (n,) that they show.
        finish: measures and exports the network, given a maker of scenes of held-out digits and what metrics.json is
            to say of the training.
    """

    make_network: Callable[[], nn.Module]
    schedule: Schedule
    train: Train
    finish: Finish


def run_training(document: str | None, training: Training) -> None:
    """Parse the command line, train, measure, and write the files; `document` is what `--help` says."""
    parser = argparse.ArgumentParser(description=document)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=training.schedule.steps)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.start_processes(
            _run, (training, options, folder), options.processes, start_method="fork"
        )


def _run(rank: int, training: Training, options: argparse.Namespace, folder: str) -> None:
    torch.set_num_threads(THREADS)
    if options.processes > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=options.processes
        )
    data = load_digits()
    scans, digits = (data.images / 16).astype(np.float32), data.target
    count = int(TRAIN_SHARE * len(scans))
    schedule = training.schedule._replace(steps=options.steps)
    progress = Progress(training.make_network(), schedule, options.checkpoint)
    if not options.measure:
        training.train(progress, scans[:count], digits[:count])
    if rank == 0:
        told = {"steps": progress.step, "processes": options.processes}
        training.finish(progress.averaged(), SceneMaker(scans[count:], digits[count:]), told)
