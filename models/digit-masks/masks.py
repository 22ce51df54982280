"""What is done with a trained network for masks: measured on held-out scenes, exported, and given samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from training.batches import fit
from training.exam import questions
from training.scene import Scene, SceneMaker

from tests.golden.networks.export import export

SEED = 78
LEAST = 0.5  # probability from which on a pixel is ink
SAMPLES = ((320, 240), (240, 320), (480, 360))


def finish(network: nn.Module, maker: SceneMaker, training: dict[str, Any], folder: Path, side: int) -> None:
    """Write the exported graph, labels, samples and metrics.json of a network for squares of `side` pixels.

    Its arguments are those of the namesake in `training.finish`.
    """
    metrics = {
        "held_out": measure(network, maker, side),
        "training": {**training, "torch": torch.__version__},
    }
    print(json.dumps(metrics, indent=2))
    one, two = (((pictures, 3, side, side),) for pictures in (1, 2))
    export(network, one, folder, name=folder.name.replace("-", "_"), other_shapes=two)
    write_samples(maker, folder)
    (folder / "labels.txt").write_text("stroke\n")
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


def find_strokes(network: nn.Module, picture: Image.Image, side: int) -> np.ndarray:
    """Return which pixels of a picture show ink, (height, width) bool, in the picture's own size.

    Probabilities are enlarged, not the mask: its edges are then smooth on pictures that are larger than the square.
    """
    fitted = fit(picture, side)
    planes = torch.from_numpy(fitted.square).permute(2, 0, 1).float()[None] / 255
    with torch.no_grad():
        square = network(planes)[0, 0].numpy()
    width, height = (max(1, round(length * fitted.scale)) for length in picture.size)
    inside = square[fitted.top : fitted.top + height, fitted.left : fitted.left + width]
    return np.asarray(Image.fromarray(inside).resize(picture.size, Image.Resampling.BILINEAR)) >= LEAST


def measure(network: nn.Module, maker: SceneMaker, side: int) -> dict[str, Any]:
    """Intersection over union on held-out scenes: of all their pixels, and the mean over scenes, at their own sizes."""
    rows = []
    for question in questions(maker, SEED):
        found = find_strokes(network, question.scene.picture, side)
        truth = question.scene.strokes
        rows.append((question.kind, int((found & truth).sum()), int((found | truth).sum()), truth.mean()))
    usual = [row for row in rows if row[0] != "4000x3000"]
    return {
        "scenes": len(usual),
        "iou": round(_iou(usual), 4),
        "mean_iou_of_scenes": round(
            float(np.mean([shared / max(1, union) for _, shared, union, _ in usual])), 4
        ),
        "iou_by_size": {
            kind: round(_iou([row for row in rows if row[0] == kind]), 4)
            for kind in dict.fromkeys(row[0] for row in rows)
        },
        "share_of_ink": round(float(np.mean([share for *_, share in usual])), 4),
    }


def _iou(rows: list[tuple[str, int, int, float]]) -> float:
    return sum(shared for _, shared, _, _ in rows) / max(1, sum(union for _, _, union, _ in rows))


def write_samples(maker: SceneMaker, folder: Path) -> None:
    """Write a few scenes as PNG in `samples`; in `truth` the mask of each one's strokes as PNG of one bit, and JSON."""
    samples, truth = (folder / name for name in ("samples", "truth"))
    samples.mkdir(exist_ok=True)
    truth.mkdir(exist_ok=True)
    for number, (width, height) in enumerate(SAMPLES):
        scene = maker(width, height, np.random.default_rng((SEED, 2000 + number)), (0.1, 0.5))
        scene.picture.quantize(128).save(samples / f"{number}.png", optimize=True)
        Image.fromarray(scene.strokes).save(truth / f"{number}.png", optimize=True)
        (truth / f"{number}.json").write_text(json.dumps(truth_of(scene, number)) + "\n")


def truth_of(scene: Scene, number: int) -> dict[str, Any]:
    """Return a scene's truth for a JSON file."""
    return {
        "size": list(scene.picture.size),
        "strokes": f"{number}.png",
        "stroke_pixels": int(scene.strokes.sum()),
    }
