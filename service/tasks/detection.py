"""Detection: where things are in a picture, and what they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import Array
from service.config.task_keys import TaskKeys
from service.images.geometry import ImageGeometry
from service.tasks.boxes import BoxFinder, BoxParameters, PictureBox, geometry_of, place_boxes
from service.tasks.task import Prediction, Task, TaskModel
from service.tasks.yolo_shapes import BoxesConfig

if TYPE_CHECKING:
    from service.images.drawing import Drawing


_LEAST = 0.01
"""Confidence of the boxes that are looked at where a score is followed as it falls."""


@dataclass(frozen=True, slots=True)
class Detected(Prediction):
    """Something that was found in a picture."""

    label: str  # name of its class; its index in digits where the model has no labels
    index: int  # number of its class
    probability: float  # how probable the class is, from 0 to 1
    box: PictureBox


class Detection(Task):
    """The task of models that find things: YOLOv5, YOLOv8 and YOLO11, decoded or not."""

    name = "detection"
    keys = TaskKeys(BoxesConfig, takes_labels=True)
    prediction = Detected
    parameters = BoxParameters
    returns_outputs = False
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._finder = BoxFinder(model, model.config.task_table(BoxesConfig))

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Detected]]:
        """Return the boxes of each item of the batch, most probable first.

        Raises:
            ServiceError: 422 `no_boxes`.
        """
        found = self._finder.find(outputs, parameters)
        responses = []
        for item, boxes in enumerate(found):
            placed = place_boxes(boxes.boxes, geometry_of(images, item))
            rows = zip(boxes.classes.tolist(), boxes.scores.tolist(), placed, strict=True)
            responses.append(
                [Detected(self._finder.label(index), index, score, box) for index, score, box in rows]
            )
        return responses

    @property
    def all_scores(self) -> Mapping[str, Any]:
        """Boxes of nearly any confidence: of those with less, a picture has thousands."""
        return {"confidence": _LEAST}

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw the boxes."""
        draw_boxes(drawing, predictions)


def draw_boxes(drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
    """Draw boxes, the most probable last, so that it lies on top."""
    for one in reversed(predictions):
        if isinstance(one, Detected):
            drawing.box(one.box, f"{one.label} {one.probability:.2f}", one.index)
