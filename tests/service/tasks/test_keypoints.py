import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from engine import Array, Port
from service.config.model_config import ModelConfig, ModelConfigError
from service.errors import ServiceError
from service.images.drawing import Drawing
from service.images.geometry import ImageGeometry
from service.tasks import TaskModel, open_task
from service.tasks.keypoints import Keypoints

GOLDEN = Path(__file__).parents[2] / "golden" / "detection.npz"
SKELETON = [[0, 1], [1, 2], [3, 4]]


def golden(name: str) -> Array:
    with np.load(GOLDEN) as archive:
        return np.asarray(archive[name])


def keypoints(*outputs: tuple[int | None, ...], **keys: Any) -> Keypoints:
    table = {"points": 5, "skeleton": SKELETON, "max_detections": 1000, **keys}
    config = ModelConfig.model_validate({"task": "keypoints", "labels": ["person"], "keypoints": table})
    shapes = outputs or ((None, 20, 126),)
    ports = [Port(f"out{index}", str(index), shape, "f32") for index, shape in enumerate(shapes)]
    task = open_task(TaskModel(config, [Port("in", "in", (None, 3, 64, 96), "f32")], ports))
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


FORMS = ["points apart", "points as maps", "one set of maps", "all apart", "joined", "cells first"]


def raw_outputs(form: str) -> list[Array]:
    """The same undecoded boxes of one class and their points, as graphs give them."""
    maps = [golden(f"yolov8/map_{index}")[:, :65] for index in range(3)]
    points = [golden(f"points/map_{index}") for index in range(3)]
    joined = np.concatenate([one.reshape(2, 15, -1) for one in points], axis=2)
    whole = [np.concatenate(pair, axis=1) for pair in zip(maps, points, strict=True)]
    cells = np.concatenate([one.reshape(2, 80, -1) for one in whole], axis=2)
    return {
        "points apart": [*maps, joined],
        "points as maps": [*maps[::-1], *points],
        "one set of maps": whole,
        "all apart": [*(one[:, :64] for one in maps), *(one[:, 64:] for one in maps), joined],
        "joined": [cells],
        "cells first": [cells.transpose(0, 2, 1)],
    }[form]


@pytest.mark.parametrize("form", FORMS)
def test_undecoded_figures_that_pytorch_finds(form: str) -> None:
    outputs = raw_outputs(form)
    found = keypoints(*(one.shape for one in outputs)).predict(outputs, (), {})
    for item, figures in enumerate(found):
        wanted = golden(f"points/{item}")
        assert len(figures) == len(wanted) > 3
        np.testing.assert_allclose([one.box for one in figures], wanted[:, :4], rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose([one.probability for one in figures], wanted[:, 4], rtol=1e-5)
        points = np.array([one.points for one in figures])
        np.testing.assert_allclose(points, wanted[:, 6:].reshape(-1, 5, 3), rtol=1e-4, atol=1e-3)


def test_undecoded_outputs_of_a_request_that_do_not_belong_together() -> None:
    outputs = raw_outputs("points apart")
    task = keypoints(*(one.shape for one in outputs))
    for wrong in (outputs[3][..., :-1], outputs[3][:, :-1], outputs[3][:1]):
        with pytest.raises(ServiceError) as caught:
            task.predict([*outputs[:3], wrong], (), {})
        assert (caught.value.status, caught.value.code) == (422, "no_boxes")


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
    assert not pixels[50, 30].any(), "nor has one that is not a number"


def test_configurations_that_do_not_fit() -> None:
    with pytest.raises(ModelConfigError, match=re.escape("(batch, 4 + classes + 15, 126 cells)")):
        keypoints((None, 21, 126))
    with pytest.raises(ValidationError, match="there is no point 9"):
        keypoints(skeleton=[[0, 9]])
