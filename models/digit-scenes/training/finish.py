"""What is done with a trained detector: measured on held-out scenes, exported, and given samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.golden.networks.export import export

from .average_precision import Detections, iou, mean_average_precision
from .batches import Fitted, fit
from .exam import questions
from .reading import read_boxes
from .scene import Scene, SceneMaker

SEED = 77
LEAST, OVERLAP = 0.001, 0.45  # for average precision, which looks at all confidences
SHOWN = 0.25  # confidence from which on the server shows a box
SAMPLES = ((320, 240), (240, 320), (640, 480), (400, 400), (200, 150))


def finish(network: nn.Module, maker: SceneMaker, training: dict[str, Any], folder: Path, side: int) -> None:
    """Write the exported graph, labels, samples and metrics.json of a detector for squares of `side` pixels.

    Args:
        network: the trained detector.
        maker: makes scenes of held-out digits.
        training: what metrics.json says of it.
        folder: where the files go.
        side: of the square that the network takes.
    """
    metrics = {
        "held_out": measure(network, maker, side),
        "training": {**training, "torch": torch.__version__},
    }
    print(json.dumps(metrics, indent=2))
    one, two = (((pictures, 3, side, side),) for pictures in (1, 2))
    name = folder.name.replace("-", "_")
    export(network, one, folder, name=name, moduleop="models.yolo.Detect", other_shapes=two)
    write_samples(maker, folder)
    (folder / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


def detect(network: nn.Module, picture: Fitted, least: float) -> Detections:
    """Return what the network finds, in pixels of the original picture."""
    planes = torch.from_numpy(picture.square).permute(2, 0, 1).float()[None] / 255
    with torch.no_grad():
        rows = network(planes)[0].numpy()
    found = read_boxes(rows, least, OVERLAP)
    moved = np.array((picture.left, picture.top, picture.left, picture.top))
    return found._replace(boxes=(found.boxes - moved) / picture.scale)


def measure(network: nn.Module, maker: SceneMaker, side: int) -> dict[str, Any]:
    """Average precision on held-out scenes, all and of each size, and how far off boxes on large pictures are."""
    found, truth, kinds = [], [], []
    for question in questions(maker, SEED):
        scene = question.scene
        found.append(detect(network, fit(scene.picture, side), LEAST))
        truth.append(Detections(scene.boxes, scene.digits, np.ones(len(scene.digits))))
        kinds.append(question.kind)
    large = np.array(kinds) == "4000x3000"
    usual = [index for index, is_large in enumerate(large) if not is_large]
    map50, by_digit = mean_average_precision([found[i] for i in usual], [truth[i] for i in usual])
    return {
        "scenes": len(usual),
        "digits": sum(len(truth[i].classes) for i in usual),
        "map50": round(map50, 4),
        "ap50_by_digit": [round(by_digit[digit], 4) for digit in range(10)],
        "map50_by_size": {
            kind: round(_map50(found, truth, [k == kind for k in kinds]), 4) for kind in dict.fromkeys(kinds)
        },
        "at_confidence_0.25": _counts(found, truth, usual),
        "4000x3000": _deviations(found, truth, np.flatnonzero(large).tolist()),
    }


def _map50(found: list[Detections], truth: list[Detections], chosen: list[bool]) -> float:
    pairs = [
        pair for pair, is_chosen in zip(zip(found, truth, strict=True), chosen, strict=True) if is_chosen
    ]
    return mean_average_precision([pair[0] for pair in pairs], [pair[1] for pair in pairs])[0]


def _counts(found: list[Detections], truth: list[Detections], chosen: list[int]) -> dict[str, Any]:
    """Of what the server shows: how many are right, and how many digits are found at all, found and read right."""
    shown = right = located = 0
    for index in chosen:
        kept = found[index].scores >= SHOWN
        overlaps = iou(truth[index].boxes, found[index].boxes[kept]) >= 0.5
        same = truth[index].classes[:, None] == found[index].classes[kept][None]
        shown += int(kept.sum())
        located += int(overlaps.any(1).sum())
        right += int((overlaps & same).any(1).sum())
    total = sum(len(truth[index].classes) for index in chosen)
    return {
        "boxes": shown,
        "precision": round(right / max(1, shown), 4),
        "digits_found": round(located / total, 4),
        "digits_found_and_read": round(right / total, 4),
    }


def _deviations(found: list[Detections], truth: list[Detections], chosen: list[int]) -> dict[str, Any]:
    """How far the edges of boxes that are found are from the truth, in percent of the picture's longer side."""
    off = []
    for index in chosen:
        kept = found[index].scores >= SHOWN
        overlaps = iou(truth[index].boxes, found[index].boxes[kept])
        for row, box in zip(overlaps, truth[index].boxes, strict=True):
            if len(row) and row.max() >= 0.5:
                off.append(np.abs(found[index].boxes[kept][row.argmax()] - box).max() / 40)
    total = sum(len(truth[index].classes) for index in chosen)
    return {
        "digits": total,
        "found": len(off),
        "edge_off_by_percent_median": round(float(np.median(off)), 3) if off else None,
        "edge_off_by_percent_most": round(float(np.max(off)), 3) if off else None,
    }


def write_samples(maker: SceneMaker, folder: Path) -> None:
    """Write a few scenes as PNG in `samples`, and what is in each as JSON in `truth`."""
    samples, truth = (folder / name for name in ("samples", "truth"))
    samples.mkdir(exist_ok=True)
    truth.mkdir(exist_ok=True)
    for number, (width, height) in enumerate(SAMPLES):
        scene = maker(width, height, np.random.default_rng((SEED, 2000 + number)), (0.1, 0.5))
        scene.picture.quantize(128).save(samples / f"{number}.png", optimize=True)
        (truth / f"{number}.json").write_text(json.dumps(truth_of(scene)) + "\n")


def truth_of(scene: Scene) -> dict[str, Any]:
    """Return a scene's truth for a JSON file: `digits`, each with its `label` and its `box`."""
    digits = zip(scene.digits.tolist(), scene.boxes.tolist(), strict=True)
    return {
        "size": list(scene.picture.size),
        "digits": [{"label": str(digit), "box": box} for digit, box in digits],
    }
