"""Detection of lines of text: rectangles around the regions of a probability map (DB; Liao et al., 2020)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.images.whole import Corners
from service.tasks.boxes import PictureBox, geometry_of
from service.tasks.chosen_output import choose_output
from service.tasks.map_regions import find_regions, smallest_rectangle
from service.tasks.score_map import input_size
from service.tasks.task import Prediction, Task, TaskModel, TaskParameters

if TYPE_CHECKING:
    from service.images.drawing import Drawing

_LEAST_SIDE = 3
"""Pixels of the map that a region measures at least; what is grown measures two more."""


class TextDetectionConfig(TomlTable):
    """How a map becomes lines of text.

    Attributes:
        output: operator or operand name of the output: (batch, 1, rows, columns); default: the first output.
        sigmoid: whether the output holds logits.
        threshold: probability above which a pixel belongs to a line.
        confidence: minimum mean probability of a line.
        expand: by how much a line is grown on each side: `expand` x area / perimeter, `unclip_ratio` of PP-OCR.
        max_detections: maximum lines per image.
    """

    output: str | None = None
    sigmoid: bool = False
    threshold: float = Field(default=0.3, gt=0, lt=1)
    confidence: float = Field(default=0.5, ge=0, lt=1)
    expand: float = Field(default=1.6, ge=0, le=10)
    max_detections: int = Field(default=1000, ge=1, le=1000)


class TextDetectionParameters(TaskParameters):
    """What requests may set for the detection of lines."""

    confidence: float | None = Field(
        default=None, ge=0, lt=1, description="minimum mean probability of a line"
    )
    max_detections: int | None = Field(default=None, ge=1, le=1000, description="maximum lines per image")


@dataclass(frozen=True, slots=True)
class TextLine(Prediction):
    """A line of text in a picture."""

    text: Annotated[str, Field(description="what it says; empty where nothing has read it")]
    probability: float  # of the line's pixels; mean over the characters where it was read
    box: PictureBox
    corners: Annotated[
        Corners,
        Field(description="upper left, upper right, lower right and lower left of the line, as x and y"),
    ]


class TextDetection(Task):
    """The task of models that say of each pixel how probably it belongs to a line of text, as PP-OCR's detectors.

    Raises:
        ModelConfigError: the chosen output does not exist, or has another shape.
    """

    name = "text-detection"
    keys = TaskKeys(TextDetectionConfig)
    prediction = TextLine
    parameters = TextDetectionParameters
    returns_outputs = False
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(TextDetectionConfig)
        self._chosen = choose_output(model.outputs, self._options.output, "text-detection.output")
        self._taken = input_size(model)
        _check(model.outputs[self._chosen])

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[TextLine]]:
        """Return the lines of each picture from top to bottom, those side by side from left to right.

        Args:
            outputs: the chosen one holds for each pixel how probably it belongs to a line.
            images: where the pictures lie in the input.
            parameters: `confidence` and `max_detections`; by default as configured.

        Raises:
            ServiceError: 422 `no_boxes` where the input's size made an output of another shape.
        """
        maps = outputs[self._chosen]
        if maps.ndim != 4 or maps.shape[1] != 1 or maps.dtype.kind != "f":
            message = f"the output has shape {maps.shape}; expected (batch, 1, rows, columns)"
            raise ServiceError(422, "no_boxes", message, {"shape": list(maps.shape)})
        chosen = {**self._options.model_dump(include={"confidence", "max_detections"}), **parameters}
        return [
            self._find(scores.astype(np.float32), geometry_of(images, item), chosen)
            for item, (scores,) in enumerate(maps)
        ]

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw the lines, and what they say."""
        draw_lines(drawing, predictions)

    def _find(
        self, scores: Array, geometry: ImageGeometry | None, parameters: Mapping[str, Any]
    ) -> list[TextLine]:
        options = self._options
        if options.sigmoid:
            scores = 0.5 + 0.5 * np.tanh(0.5 * scores)
        width, height = self._taken or scores.shape[::-1]
        step = np.array([width / scores.shape[1], height / scores.shape[0]])
        lines = []
        for points in find_regions(scores > options.threshold, parameters["max_detections"]):
            tight = smallest_rectangle(points)
            probability = tight.mean(scores) if tight.sides.min() >= _LEAST_SIDE else 0.0
            if not parameters["confidence"] <= probability <= 1 or not probability:
                continue
            line = tight.grown(float(options.expand * tight.sides.prod() / (2 * tight.sides.sum())))
            if line.sides.min() >= _LEAST_SIDE + 2:
                lines.append(_placed(probability, (line.corners() + 0.5) * step, geometry))
        return _in_reading_order(lines)


def draw_lines(drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
    """Draw lines of text, and what they say."""
    for place, one in enumerate(predictions):
        if isinstance(one, TextLine):
            drawing.outline(one.corners, one.text, place)


def _placed(probability: float, corners: Array, geometry: ImageGeometry | None) -> TextLine:
    placed = corners if geometry is None else geometry.to_picture(corners)
    (left, top), (right, bottom) = placed.min(axis=0).tolist(), placed.max(axis=0).tolist()
    first, second, third, fourth = (tuple[float, float](point) for point in placed.tolist())
    return TextLine("", probability, (left, top, right, bottom), (first, second, third, fourth))


def _in_reading_order(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return lines from top to bottom of a page that may be rotated; those side by side from left to right."""
    if not lines:
        return []
    corners = np.array([line.corners for line in lines])
    first, second, _, fourth = corners.transpose(1, 0, 2)
    across, down = (second - first).T
    angle = np.median(np.arctan2(down, across))
    heights = np.hypot(*(fourth - first).T)
    x, y = (
        np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) @ corners.mean(axis=1).T
    )
    rows: list[list[int]] = []
    for place in np.argsort(y, kind="stable").tolist():
        if rows and y[place] - y[rows[-1][0]] < heights[rows[-1][0]] / 2:
            rows[-1].append(place)
        else:
            rows.append([place])
    return [lines[place] for row in rows for place in sorted(row, key=lambda one: float(x[one]))]


def _check(port: Port) -> None:
    shape = port.shape
    if shape is not None and (len(shape) != 4 or shape[1] not in (None, 1)):
        problem = f"shape is {port}"
        raise ModelConfigError(FILE_NAME, "text-detection.output", problem, "(batch, 1, rows, columns)")
