"""The YOLOv5s of the KuiperInfer course, 57 convolutions and `models.yolo.Detect`, against PyTorch."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.dtypes import Array
from service.config.model_config import ModelConfig
from service.tasks import TaskModel, open_task
from service.tasks.detection import Detected
from tests.golden.yolov5s import FOLDER, STEP, image, write_weights

PARAM = FOLDER / "yolov5s.pnnx.param"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("yolov5s") / "yolov5s.pnnx.bin"
    write_weights(PARAM, target)
    return target


def kept() -> tuple[tuple[int, ...], Array]:
    with np.load(FOLDER / "io.npz") as archive:
        return tuple(archive["shape"].tolist()), archive["rows"]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_boxes_are_those_of_pytorch(weights: Path, backend: str) -> None:
    graph = RuntimeGraph(PARAM, weights, backend=backend)
    graph.build()
    types = [operator.type for operator in graph.operators]
    assert (types.count("nn.Conv2d"), types.count("models.yolo.Detect")) == (57, 1)
    (boxes,) = graph.forward([image()])
    shape, rows = kept()
    assert boxes.shape == shape == (1, 25_200, 85)
    for columns in (slice(0, 4), slice(4, 85)):  # pixels, and probabilities
        wanted = rows[:, columns]
        np.testing.assert_allclose(
            boxes[0, ::STEP, columns], wanted, rtol=1e-3, atol=1e-5 * np.abs(wanted).max()
        )


def test_its_head_is_known_without_labels(weights: Path) -> None:
    graph = RuntimeGraph(PARAM, weights, backend="numpy")
    graph.build()
    config = ModelConfig.model_validate({"task": "detection"})
    task = open_task(TaskModel(config, graph.inputs, graph.outputs, graph.operators))
    boxes = np.zeros((1, 25_200, 85), np.float32)
    boxes[0, 7, :5], boxes[0, 7, 5 + 16] = (320, 160, 100, 50, 0.9), 0.8
    (found,) = task.predict([boxes], (), {}) or ()
    assert len(found) == 1
    (one,) = found
    assert isinstance(one, Detected)
    assert (one.label, one.box) == ("16", (270, 135, 370, 185))
    assert one.probability == pytest.approx(0.72)
