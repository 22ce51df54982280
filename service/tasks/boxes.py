"""Finds the boxes of a batch: what detection, instance segmentation and key points have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from engine import Array
from service.images.geometry import ImageGeometry
from service.tasks.suppression import suppress
from service.tasks.task import TaskModel, TaskParameters
from service.tasks.yolo_heads import Candidates, unreadable
from service.tasks.yolo_shapes import BoxesConfig, Extra, find_head

MAX_CANDIDATES = 30_000
"""Maximum boxes of a picture that are compared with each other, the most probable ones."""

NO_EXTRA = Extra()
Box = tuple[float, float, float, float]
PictureBox = Annotated[
    Box,
    Field(
        description="left, top, right and bottom in pixels of the original picture; of the input where that is a tensor"
    ),
]


class BoxParameters(TaskParameters):
    """What requests may set for tasks that find boxes."""

    confidence: float | None = Field(default=None, ge=0, lt=1, description="minimum score of a box")
    iou: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="NMS: IoU above which only the higher-scored of two boxes is kept",
    )
    class_agnostic: bool | None = Field(default=None, description="NMS across classes")
    max_detections: int | None = Field(default=None, ge=1, le=1000, description="maximum boxes per image")


class BoxFinder:
    """Finds boxes in the outputs of a model.

    Args:
        model: the model.
        options: the table of its task.
        extra: what a box has besides its place and its classes.

    Raises:
        ModelConfigError: the graph has no head that is known.
    """

    def __init__(self, model: TaskModel, options: BoxesConfig, extra: Extra = NO_EXTRA) -> None:
        self.head = find_head(model, options, extra)
        self._options = options
        self._labels = model.config.labels or ()
        self._iou = self.head.iou if options.iou is None else options.iou

    def find(self, outputs: Sequence[Array], parameters: Mapping[str, Any]) -> list[Candidates]:
        """Return for each item of the batch the boxes that remain, most probable first.

        Args:
            outputs: the graph's.
            parameters: those of `BoxParameters` that the request sets.

        Raises:
            ServiceError: 422 `no_boxes` where the outputs are not those of the head.
        """
        first = outputs[self.head.outputs[0]]
        if first.ndim < 3:
            raise unreadable(f"output {self.head.outputs[0]} has shape {first.shape}")
        with np.errstate(all="ignore"):  # what the network computes may overflow here as well
            return [self._find(outputs, item, parameters) for item in range(len(first))]

    def label(self, index: int) -> str:
        """Return the name of a class; its index in digits where the model has no labels."""
        return self._labels[index] if index < len(self._labels) else str(index)

    def _find(self, outputs: Sequence[Array], item: int, parameters: Mapping[str, Any]) -> Candidates:
        options = self._options
        found = self.head.candidates(outputs, item, parameters.get("confidence", options.confidence))
        if len(found.scores) > MAX_CANDIDATES:
            found = _chosen(found, np.argsort(-found.scores, kind="stable")[:MAX_CANDIDATES])
        is_agnostic = parameters.get("class_agnostic", options.class_agnostic)
        return _chosen(
            found,
            suppress(
                found.boxes,
                found.scores,
                None if is_agnostic else found.classes,
                parameters.get("iou", self._iou),
                parameters.get("max_detections", options.max_detections),
            ),
        )


def place_boxes(boxes: Array, geometry: ImageGeometry | None) -> list[Box]:
    """Return boxes in pixels of the picture, within it; in pixels of the input where there is no picture."""
    placed = boxes if geometry is None else geometry.to_picture(boxes.reshape(-1, 2, 2)).reshape(-1, 4)
    return [(left, top, right, bottom) for left, top, right, bottom in placed.tolist()]


def geometry_of(images: Sequence[ImageGeometry], item: int) -> ImageGeometry | None:
    """Return where the picture of an item lies; None where the request sent tensors."""
    return images[item] if item < len(images) else None


def _chosen(found: Candidates, places: Array) -> Candidates:
    return replace(
        found,
        boxes=found.boxes[places],
        scores=found.scores[places],
        classes=found.classes[places],
        extra=found.extra[places],
    )
