"""Measure what suppression across classes does: `python models/digit-scenes/measure_suppression.py`.

Prints precision and recall at IoU 0.5, by the server's own reading of boxes, on 30 scenes of held-out digits. Neither
the training nor metrics.json uses their seeds. Needs the extra `train` for the scans.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from training.average_precision import iou  # noqa: E402
from training.batches import fit  # noqa: E402
from training.command import TRAIN_SHARE  # noqa: E402
from training.exam import questions  # noqa: E402
from training.scene import SceneMaker  # noqa: E402

from engine import RuntimeGraph  # noqa: E402
from service.config.model_config import load_model_config  # noqa: E402
from service.tasks import open_task  # noqa: E402
from service.tasks.task import TaskModel  # noqa: E402

SCENES, SEED, SIDE, OVERLAP = 30, 4711, 416, 0.5


def main() -> None:
    """Print one line for suppression within classes, and one across them."""
    data = load_digits()
    count = int(TRAIN_SHARE * len(data.images))
    maker = SceneMaker((data.images[count:] / 16).astype(np.float32), data.target[count:])
    graph = RuntimeGraph(HERE / "digit_scenes.pnnx.param")
    graph.build()
    task = open_task(TaskModel(load_model_config(HERE), graph.inputs, graph.outputs, graph.operators))
    counts = {False: np.zeros(3, int), True: np.zeros(3, int)}
    for question in islice(questions(maker, SEED), SCENES):
        scene, fitted = question.scene, fit(question.scene.picture, SIDE)
        outputs = graph.forward([np.float32(fitted.square.transpose(2, 0, 1)[None]) / 255])
        truth = scene.boxes * fitted.scale + np.tile((fitted.left, fitted.top), 2)
        for is_agnostic in counts:
            found = task.predict(outputs, (), {"class_agnostic": is_agnostic})[0]
            boxes = np.array([one.box for one in found]).reshape(-1, 4)
            same = scene.digits[:, None] == np.array([one.index for one in found], int)
            right = ((iou(truth, boxes) >= OVERLAP) & same).any(1).sum()
            counts[is_agnostic] += right, len(found), len(truth)
    for is_agnostic, (right, shown, total) in counts.items():
        print(
            f"class_agnostic = {str(is_agnostic).lower():<6} precision {right / shown:.3f} ({right} of {shown} boxes), "
            f"recall {right / total:.3f} ({right} of {total} digits)"
        )


if __name__ == "__main__":
    main()
