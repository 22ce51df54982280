"""The models that ship, on a few drawings of `models/exam.py`: handwritten, and printed in matplotlib's fonts."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_digits

MODELS = Path(__file__).parents[2] / "models"
FONTS = Path(matplotlib.get_data_path()) / "fonts"
SCENES = 4


@pytest.fixture(scope="module")
def exam() -> Any:
    kept = list(sys.path)
    sys.path.insert(0, str(MODELS))
    try:
        return import_module("exam")
    finally:
        sys.path[:] = kept


@pytest.fixture(scope="module")
def source(exam: Any) -> Any:
    data = load_digits()
    count = int(exam.TRAIN_SHARE * len(data.images))
    families = exam.find_fonts({"matplotlib": ("DejaVuSans", "DejaVuSerif")}, [FONTS], 2)
    return exam.Source(families, (data.images[count:] / 16).astype(np.float32), data.target[count:])


def test_digits_are_read(exam: Any, source: Any) -> None:
    model = exam.Shipped("digits")
    right: dict[str, list[bool]] = {"printed": [], "handwritten": []}
    for one in exam.drawings(source, np.random.default_rng(exam.SEED)):
        found = model.predict(one.picture, top_k=1)
        right[one.source].append(found[0].label == str(one.digit))
    assert np.mean(right["printed"]) > 0.98
    assert np.mean(right["handwritten"]) > 0.93


@pytest.mark.parametrize("is_printed", [True, False])
@pytest.mark.parametrize("is_photographed", [True, False])
def test_scenes_are_read_and_their_strokes_marked(
    exam: Any, source: Any, is_printed: bool, is_photographed: bool
) -> None:
    detector, masker = exam.Shipped("digit-scenes"), exam.Shipped("digit-masks")
    right = shown = total = shared = union = 0
    rng = np.random.default_rng((exam.SEED, is_printed, is_photographed))
    for _ in range(SCENES):
        scene = exam.draw_scene(source, is_printed, is_photographed, rng)
        hits, boxes, _ = exam._hits(detector.predict(scene.picture), scene)
        right, shown, total = right + hits, shown + boxes, total + len(scene.boxes)
        mask = np.asarray(masker.predict(scene.picture, mask="array")[0].mask) == 0
        shared += int((mask & scene.strokes).sum())
        union += int((mask | scene.strokes).sum())
    assert right / shown > 0.8
    assert right / total > 0.8
    assert shared / union > 0.8
