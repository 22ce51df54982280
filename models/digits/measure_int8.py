"""Measure the digits model in int8: `python models/digits/measure_int8.py`.

Calibrates on scans that the model was trained on, and compares float32 and int8 on the 360 that it was not. Needs the
extra `train` for the scans, and writes nothing beside this file. Exit code 1 means that int8 lost more than 0.3 points.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from train import HERE, TRAIN_SHARE
from training.exam import prepare, scan_picture

from engine import RuntimeGraph
from engine.calibration.calibrator import METHODS, Calibrator
from engine.calibration.examples import ArrayExamples

MAX_POINTS = 0.3
CALIBRATED_ON = 128


def main() -> int:
    """Print the accuracy in float32, and in int8 for each way to choose ranges."""
    data = load_digits()
    count = int(TRAIN_SHARE * len(data.images))
    images = np.stack([prepare(scan_picture(scan)) for scan in data.images / 16])[:, None]
    graph = opened(None)
    plain = accuracy(graph, images[count:], data.target[count:])
    print(f"f32                {plain:.2%} of {len(images) - count}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scans.npz"
        np.savez(path, in_0=images[: count : count // CALIBRATED_ON])
        for method in METHODS:
            calibrator = Calibrator(graph, ArrayExamples(path, graph.inputs), [], lambda *_: None)
            calibrator.calibrate(method)
            found = accuracy(
                opened(calibrator.quantization(calibrator.candidates)), images[count:], data.target[count:]
            )
            print(f"int8, {method:<12} {found:.2%}")
            worst = max(worst, 100 * (plain - found))
    print(f"int8 loses {worst:.2f} points at most; {MAX_POINTS} are allowed")
    return int(worst > MAX_POINTS)


def opened(quantization):
    """Return the model, built."""
    graph = RuntimeGraph(HERE / "digits.pnnx.param", quantization=quantization)
    graph.build()
    return graph


def accuracy(graph, images: np.ndarray, digits: np.ndarray) -> float:
    """Return the part of the images that are read right."""
    return float(np.mean(graph.forward([images])[0].argmax(1) == digits))


if __name__ == "__main__":
    sys.exit(main())
