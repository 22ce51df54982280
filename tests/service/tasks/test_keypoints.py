import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.images.drawing import Drawing
from service.images.geometry import ImageGeometry
from service.tasks import TaskModel, open_task
from service.tasks.keypoints import Keypoints

GOLDEN = Path(__file__).parents[2] / "golden" / "detection.npz"
SKELETON = [[0, 1], [1, 2], [3, 4]]


def golden(name: str) -> Array:
    with np.load(GOLDEN) as archive:
        return np.asarray(archive[name])


def keypoints(channels: int = 20, **keys: Any) -> Keypoints:
    table = {"points": 5, "skeleton": SKELETON, "max_detections": 1000, **keys}
    config = ModelConfig.model_validate({"task": "keypoints", "labels": ["person"], "keypoints": table})
    shapes = [Port("in", "in", (None, 3, 64, 96), "f32")], [Port("out", "out", (None, channels, 126), "f32")]
    task = open_task(TaskModel(config, *shapes))
    assert isinstance(task, Keypoints)
    return task


def test_figures_that_pytorch_finds() -> None:
    found = keypoints().predict([golden("keypoints/decoded")], (), {})
    for item, figures in enumerate(found):
        wanted = golden(f"keypoints/{item}")
        assert len(figures) == len(wanted) > 3
        np.testing.assert_allclose([one.box for one in figures], wanted[:, :4], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose([one.probability for one in figures], wanted[:, 4], rtol=1e-6)
        points = np.array([one.points for one in figures])
        np.testing.assert_allclose(points, wanted[:, 6:].reshape(-1, 5, 3), rtol=1e-6)


def test_points_are_those_of_the_original_picture() -> None:
    rows = np.zeros((1, 20, 126), np.float32)
    rows[0, :5, 0] = [40, 40, 10, 10, 0.9]
    rows[0, 5:8, 0] = [30, 20, 0.75]
    geometry = ImageGeometry(192, 64, (0.5, 0.5), (0, 16))
    (figure,) = keypoints().predict([rows], [geometry], {})[0]
    assert figure.points[0] == pytest.approx((60, 8, 0.75))
    assert figure.box == pytest.approx((70, 38, 90, 58))


def test_points_and_lines_are_drawn_where_they_are_probable() -> None:
    rows = np.zeros((1, 20, 126), np.float32)
    rows[0, :5, 0] = [48, 32, 90, 60, 0.9]
    rows[0, 5:, 0] = [20, 20, 0.9, 60, 20, 0.9, 60, 50, 0.1, 20, 50, 0.9, 40, 50, float("nan")]
    (figure,) = keypoints().predict([rows], (), {})[0]
    drawing = Drawing(np.zeros((64, 96, 3), np.uint8), (96, 64))
    keypoints().draw(drawing, [figure])
    pixels = np.asarray(drawing._image)
    assert pixels[20, 40].any(), "a line joins the first two points"
    assert not pixels[35, 60].any(), "a point that is not probable has no line"
    assert not pixels[50, 30].any(), "nor has one that is no number"


def test_configurations_that_do_not_fit() -> None:
    with pytest.raises(ModelConfigError, match=re.escape("(batch, 4 + classes + 15, 126 cells)")):
        keypoints(channels=21)
    with pytest.raises(ValidationError, match="there is no point 9"):
        keypoints(skeleton=[[0, 9]])
