"""Key points: where the joints of people, or the corners of things, are in a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from engine import Array
from service.config.task_keys import TaskKeys
from service.images.geometry import ImageGeometry
from service.tasks.boxes import BoxFinder, BoxParameters, PictureBox, geometry_of, place_boxes
from service.tasks.task import Prediction, Task, TaskModel
from service.tasks.yolo_shapes import BoxesConfig, Extra

if TYPE_CHECKING:
    from service.images.drawing import Drawing

COCO_SKELETON = (
    (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7), (6, 8),
    (7, 9), (8, 10), (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6),
)  # fmt: skip
"""Which of the 17 points of COCO's people are joined; they are nose, eyes, ears, shoulders, elbows, wrists, hips, knees
and ankles."""
_COCO_POINTS = 17
_SEEN = 0.5
"""Least probability of a point that is drawn."""

_Line = Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], Field(strict=False)]


class KeypointsConfig(BoxesConfig):
    """How outputs become boxes with points.

    Attributes:
        points: points per box.
        dimensions: values per point: 2 for x and y, 3 with probability.
        skeleton: pairs of points to connect; default: COCO's for 17 points.
    """

    points: int = Field(default=_COCO_POINTS, ge=1, le=1024)
    dimensions: Literal[2, 3] = 3
    skeleton: Annotated[tuple[_Line, ...], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _check_skeleton(self) -> Self:
        for line in self.skeleton or ():
            if max(line) >= self.points:
                raise ValueError(f"skeleton: there is no point {max(line)}; expected 0 to {self.points - 1}")
        return self


@dataclass(frozen=True, slots=True)
class Figure(Prediction):
    """Something that was found in a picture, with its points."""

    label: str  # name of its class; its index in digits where the model has no labels
    index: int  # number of its class
    probability: float  # how probable the class is, from 0 to 1
    box: PictureBox
    points: Annotated[
        tuple[tuple[float, ...], ...],
        Field(
            description="x and y in pixels of the original picture, and the probability where the model gives one"
        ),
    ]


class Keypoints(Task):
    """The task of models that find figures by their points: YOLOv8-pose and YOLO11-pose, decoded or not."""

    name = "keypoints"
    keys = TaskKeys(KeypointsConfig, takes_labels=True)
    prediction = Figure
    parameters = BoxParameters
    returns_outputs = False
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        options = model.config.task_table(KeypointsConfig)
        self._shape = options.points, options.dimensions
        extra = Extra(options.points * options.dimensions, options.dimensions)
        self._finder = BoxFinder(model, options, extra)
        is_coco = options.skeleton is None and options.points == _COCO_POINTS
        self._skeleton = COCO_SKELETON if is_coco else options.skeleton or ()

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Figure]]:
        """Return the figures of each item of the batch, most probable first.

        Raises:
            ServiceError: 422 `no_boxes`.
        """
        responses = []
        for item, found in enumerate(self._finder.find(outputs, parameters)):
            geometry = geometry_of(images, item)
            points = found.extra.reshape(-1, *self._shape).astype(np.float64)
            if geometry is not None:
                points[..., :2] = geometry.to_picture(points[..., :2])
            rows = zip(
                found.classes.tolist(),
                found.scores.tolist(),
                place_boxes(found.boxes, geometry),
                points.tolist(),
                strict=True,
            )
            responses.append(
                [
                    Figure(self._finder.label(index), index, score, box, tuple(map(tuple, places)))
                    for index, score, box, places in rows
                ]
            )
        return responses

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw boxes, the points that are probable, and the lines between them."""
        for one in reversed(predictions):
            if isinstance(one, Figure):
                drawing.box(one.box, f"{one.label} {one.probability:.2f}", one.index)
                unseen = (float("nan"), float("nan"))
                places = [
                    unseen if len(point) > 2 and not point[2] >= _SEEN else (point[0], point[1])
                    for point in one.points
                ]
                drawing.points(places, self._skeleton, one.index)
