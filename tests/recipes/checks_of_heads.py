"""Boxes in real photographs, of every kind of head and whatever the size of a picture, against Ultralytics' own rules.

The reference is PyTorch and OpenCV: `LetterBox`, the network, `non_max_suppression` with boxes of different classes
moved apart by 7680 pixels a class, and `scale_boxes`.
"""

# mypy: disallow-subclassing-any=False

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from tests.golden.make_detection import nms
from tests.golden.networks.common import draw_weights
from tests.golden.networks.export import export
from tests.golden.networks.yolov5 import YoloV5
from tests.recipes import networks
from tests.recipes.checks_of_photographs import are_in, photographs, responses

cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed; tests/recipes/requirements.txt lists it")

CONFIDENCE = 0.25
MOST = 300
APART = 7680
"""Pixels that boxes of each class are moved by, so that they meet none of another class."""
ANCHORS = ((10, 13, 16, 30, 33, 23), (30, 61, 62, 45, 59, 119), (116, 90, 156, 198, 373, 326))
PHOTOGRAPHS = ("skimage/astronaut.png", "skimage/chelsea.png", "skimage/coffee.png", "skimage/rocket.jpg")
CUTS = {"tall": (97, 311), "flat": (333, 45), "small": (61, 83)}
"""Widths and heights, odd ones, of parts of a photograph."""
_LOGIT = -2.2
"""Score of a class where nothing is seen: some classes are probable in most photographs."""


class Split(nn.Module):
    """A YOLOv8 that gives its maps undecoded.

    Args:
        network: the network.
        form: `maps`: boxes and classes of a map in one output; `apart`: in outputs of their own; `cells first`: all in
            one output (batch, cells, channels).
    """

    def __init__(self, network: Any, form: str) -> None:
        super().__init__()
        self.network = network
        self.form = form
        network.detect.forward = self.read

    def read(self, maps: list[torch.Tensor]) -> Any:
        head = self.network.detect
        boxes = [branch(x) for x, branch in zip(maps, head.cv2, strict=True)]
        scores = [branch(x) for x, branch in zip(maps, head.cv3, strict=True)]
        if self.form == "apart":
            return (*boxes, *scores)
        joined = [torch.cat(pair, 1) for pair in zip(boxes, scores, strict=True)]
        if self.form == "maps":
            return tuple(joined)
        return torch.cat([one.flatten(2) for one in joined], 2).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.network(x)


class Kind(NamedTuple):
    """A network, and how its boxes are read.

    Attributes:
        network: what is served.
        whole: the same network with its boxes decoded, (batch, values, boxes), for the reference.
        has_objectness: whether the fifth value says how probable a box is, whatever is in it.
        iou: largest intersection over union of two boxes that both remain.
        keys: more of `model.toml`.
    """

    network: nn.Module
    whole: Callable[[torch.Tensor], torch.Tensor]
    has_objectness: bool = False
    iou: float = 0.7
    keys: str = ""


def yolov8(form: str) -> Kind:
    """Return a YOLOv8n whose outputs have a form."""
    whole, served = networks.yolov8n(), networks.yolov8n()
    for network in (whole, served):
        for branch in network.detect.cv3:
            branch[-1].bias.data.fill_(_LOGIT)
    return Kind(served if form == "decoded" else Split(served, form).eval(), whole)


def yolov5(form: str, size: tuple[int, int]) -> Kind:
    """Return a narrow YOLOv5 with 20 classes and biases that have few boxes probable."""
    made = []
    for raw in (form == "raw", False):
        torch.manual_seed(3)
        network = YoloV5(classes=20, size=size, raw=raw)
        draw_weights(network, (2, 3, 96, 96))
        for conv in network.detect.m:
            conv.weight.data.mul_(0.35).unflatten(0, (3, -1))[:, :4].mul_(0.2)  # no boxes as thin as a hair
            bias = conv.bias.data.view(3, -1)
            bias[:, :4], bias[:, 4], bias[:, 5:] = 0, -5.0, -0.5
        made.append(network.eval())
    anchors = f"anchors = {[list(sizes) for sizes in ANCHORS]}" if form == "raw" else ""
    return Kind(made[0], lambda x: made[1](x).transpose(1, 2), True, 0.45, anchors)


def letterbox(picture: Any, size: tuple[int, int], scale_up: bool) -> tuple[Any, np.ndarray, tuple[int, int]]:
    """Return a picture between grey bars, its scale along x and y, and the left and the upper bar.

    The scale is that of whole pixels. `scale_boxes` takes the one before rounding, and is off by up to half a pixel
    of the input at the far edge.
    """
    rows, columns = picture.shape[:2]
    scale = min(size[0] / rows, size[1] / columns)
    scale = scale if scale_up else min(scale, 1.0)
    width, height = round(columns * scale), round(rows * scale)
    across, down = (size[1] - width) / 2, (size[0] - height) / 2
    left, top = round(across - 0.1), round(down - 0.1)
    if (rows, columns) != (height, width):
        picture = cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR)
    edges = top, round(down + 0.1), left, round(across + 0.1)
    made = cv2.copyMakeBorder(picture, *edges, cv2.BORDER_CONSTANT, value=(114,) * 3)
    return made, np.array((width / columns, height / rows)), (left, top)


def boxes_of(kind: Kind, file: Path, size: tuple[int, int], scale_up: bool) -> np.ndarray:
    """Return (boxes, 6): corners in pixels of the picture, score and class."""
    picture: Any = cv2.imread(str(file))
    rows, columns = picture.shape[:2]
    made, scale, bars = letterbox(picture, size, scale_up)
    assert made.shape[:2] == size
    pixels = torch.from_numpy(made[..., ::-1].transpose(2, 0, 1).copy()).float() / 255
    with torch.no_grad():
        values = kind.whole(pixels[None])[0].T
    scores = values[:, 5:] * values[:, 4:5] if kind.has_objectness else values[:, 4:]
    best, classes = scores.max(1)
    chosen = best > CONFIDENCE
    best, classes, values = best[chosen], classes[chosen], values[chosen]
    corners = torch.cat([values[:, :2] - values[:, 2:4] / 2, values[:, :2] + values[:, 2:4] / 2], 1)
    kept = nms(corners + classes[:, None] * APART, best, torch.zeros_like(classes), kind.iou)[:MOST]
    found = np.column_stack([corners[kept].numpy(), best[kept].numpy(), classes[kept].numpy()])
    found[:, :4] = (found[:, :4] - np.tile(bars, 2)) / np.tile(scale, 2)
    found[:, 0:4:2] = found[:, 0:4:2].clip(0, columns)
    found[:, 1:4:2] = found[:, 1:4:2].clip(0, rows)
    return found


def write_model(folder: Path, kind: Kind, size: tuple[int, int], scale_up: bool) -> Path:
    """Export a network, and describe how pictures are shown to it."""
    classes = 20 if kind.has_objectness else 80
    if not folder.exists():
        export(kind.network, [(1, 3, *size)], folder)
    labels = ", ".join(f'"{index}"' for index in range(classes))
    (folder / "model.toml").write_text(
        f'task = "detection"\nlabels = [{labels}]\n[image]\nsize = {list(size)}\nresize = "fit"\npad = 114\n'
        f'resize_as = "opencv"\nscale_up = {str(scale_up).lower()}\nmean = [0.0]\nstd = [1.0]\n'
        f"[detection]\n{kind.keys}\n"
    )
    return folder


def pictures(folder: Path) -> list[Path]:
    """Return photographs, and parts of one of them in odd sizes."""
    files = photographs(*PHOTOGRAPHS)
    whole: Any = cv2.imread(str(files[0]))
    for name, (width, height) in CUTS.items():
        files.append(folder / f"{name}.png")
        cv2.imwrite(str(files[-1]), whole[50 : 50 + height, 100 : 100 + width])
    return files


@pytest.mark.parametrize(
    ("form", "size"),
    [("decoded", (224, 224)), ("maps", (160, 288)), ("apart", (224, 160)), ("cells first", (160, 160))],
)
def test_boxes_of_yolov8(tmp_path: Path, form: str, size: tuple[int, int]) -> None:
    check(tmp_path, yolov8(form), size)


@pytest.mark.parametrize("form", ["decoded", "raw"])
def test_boxes_of_yolov5(tmp_path: Path, form: str) -> None:
    check(tmp_path, yolov5(form, (192, 224)), (192, 224))


def check(folder: Path, kind: Kind, size: tuple[int, int]) -> None:
    """Compare the boxes of all pictures, enlarged to the input's size and not."""
    files = pictures(folder)
    count = 0
    for scale_up in (True, False):
        model = write_model(folder / "model", kind, size, scale_up)
        for file, found in zip(files, responses(model, files), strict=True):
            wanted = boxes_of(kind, file, size, scale_up)
            ours = np.array([[*box["box"], box["probability"], box["index"]] for box in found]).reshape(-1, 6)
            assert are_in(wanted, ours), f"boxes are missing in {file.name}"
            assert are_in(ours, wanted), f"boxes were added in {file.name}"
            count += len(wanted)
    assert count > 2 * len(files)
