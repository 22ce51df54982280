"""Instance segmentation: where things are in a picture, and which of its pixels belong to each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from engine import Array
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.decoding import leave_large
from service.errors import ServiceError
from service.images.geometry import ImageGeometry
from service.tasks.boxes import Box, BoxFinder, BoxParameters, PictureBox, geometry_of, place_boxes
from service.tasks.run_lengths import encode_counts, sample_counts
from service.tasks.task import Prediction, Task, TaskModel
from service.tasks.yolo_heads import unreadable
from service.tasks.yolo_shapes import BoxesConfig, Extra, input_size

if TYPE_CHECKING:
    from service.images.drawing import Drawing

MaskForm = Literal["rle", "none"]
MAX_MASK_PIXELS = 1 << 28
"""Maximum pixels of the boxes of a request, in its pictures, of which masks are made."""
LARGE_PIXELS = 8_000_000
"""Maximum of them of which masks are made where they are."""

_STRIP_PIXELS = 1 << 20
"""Pixels of a mask that are decided at a time."""


class InstanceConfig(BoxesConfig):
    """How outputs become boxes with masks.

    Attributes:
        prototypes: operator or operand name of the mask prototypes (batch, prototypes, rows, columns);
            default: the output that fits.
    """

    prototypes: str | None = None


class InstanceParameters(BoxParameters):
    """What requests may set for an instance segmentation."""

    mask: MaskForm | None = Field(
        default=None, description="rle: masks as COCO's run lengths; none: boxes only"
    )


@dataclass(frozen=True, slots=True)
class Instance(Prediction):
    """Something that was found in a picture, with its pixels."""

    label: str  # name of its class; its index in digits where the model has no labels
    index: int  # number of its class
    probability: float  # how probable the class is, from 0 to 1
    box: PictureBox
    # both are None without masks
    area: Annotated[int | None, Field(description="number of its pixels")]
    mask: Annotated[
        dict[str, Any] | None,
        Field(description="size (height, width) and counts, the run lengths of COCO's tools"),
    ]


class InstanceSegmentation(Task):
    """The task of models that find things and their pixels: YOLOv8-seg and YOLO11-seg, decoded or not.

    A mask is the positive part of the prototypes, mixed by the coefficients of its box, within the box. Source:
    Ultralytics YOLOv8, `process_mask`.
    """

    name = "instance-segmentation"
    keys = TaskKeys(InstanceConfig, takes_labels=True)
    prediction = Instance
    parameters = InstanceParameters
    returns_outputs = False
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        options = model.config.task_table(InstanceConfig)
        self._prototypes, count = _find_prototypes(model, options)
        self._finder = BoxFinder(model, options, Extra(count, taken=self._prototypes))
        self._size = input_size(model)

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Instance]]:
        """Return the instances of each item of the batch, most probable first.

        Raises:
            ServiceError: 422 `no_boxes`; 413 `response_too_large` where the boxes have more than `MAX_MASK_PIXELS`.
            NeedsDecoderError: there are many, and this thread leaves those to others.
        """
        prototypes = outputs[self._prototypes]
        if prototypes.ndim != 4:
            raise unreadable(f"output {self._prototypes} has shape {prototypes.shape}")
        responses, pixels = [], 0
        for item, found in enumerate(self._finder.find(outputs, parameters)):
            geometry = geometry_of(images, item) or self._own_geometry(prototypes)
            placed = place_boxes(found.boxes, geometry)
            rows = zip(found.classes.tolist(), found.scores.tolist(), placed, found.extra, strict=True)
            wants_masks = parameters.get("mask", "rle") == "rle"
            if wants_masks:
                pixels += int(sum((right - left) * (bottom - top) for left, top, right, bottom in placed))
                if pixels > MAX_MASK_PIXELS:
                    raise _too_large(pixels)
                leave_large(pixels, LARGE_PIXELS)
            responses.append(
                [
                    self._instance(
                        index, score, box, prototypes[item] if wants_masks else None, mixed, geometry
                    )
                    for index, score, box, mixed in rows
                ]
            )
        return responses

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Colour the pixels of each instance, and draw its box."""
        found = [one for one in reversed(predictions) if isinstance(one, Instance)]
        for one in found:
            if one.mask is not None:
                sample = partial(sample_counts, one.mask["counts"], one.mask["size"][0])
                drawing.part_of_mask(one.box, sample, one.index)
        for one in found:
            drawing.box(one.box, f"{one.label} {one.probability:.2f}", one.index)

    def _instance(
        self,
        index: int,
        score: float,
        box: Box,
        prototypes: Array | None,
        mixed: Array,
        geometry: ImageGeometry,
    ) -> Instance:
        label = self._finder.label(index)
        if prototypes is None:
            return Instance(label, index, score, box, None, None)
        place = self._pixels(prototypes, box, geometry)
        mask = self._mask(prototypes, mixed, place, geometry)
        counts = _count_runs(mask, place[:2], (geometry.width, geometry.height))
        size = geometry.height, geometry.width
        written = {"size": size, "counts": encode_counts(counts)}
        return Instance(label, index, score, box, int(np.count_nonzero(mask)), written)

    def _pixels(self, prototypes: Array, box: Box, geometry: ImageGeometry) -> tuple[int, int, int, int]:
        """Return the columns and rows, as left, top, right and bottom, of a box as far as the input shows them."""
        height, width = self._input_size(prototypes)
        starts, ends = [], []
        for axis, (limit, extent) in enumerate(((width, geometry.width), (height, geometry.height))):
            offset, scale = geometry.offset[axis], geometry.scale[axis]
            starts.append(max(floor(box[axis]), floor(-offset / scale), 0))
            ends.append(min(ceil(box[axis + 2]), ceil((limit - offset) / scale), extent))
        return starts[0], starts[1], ends[0], ends[1]

    def _mask(
        self, prototypes: Array, mixed: Array, place: tuple[int, int, int, int], geometry: ImageGeometry
    ) -> Array:
        """Return which pixels of a part of the original picture belong to an instance, bool (rows, columns)."""
        nothing = np.zeros((0, 0), bool)
        left, top, right, bottom = place
        if left >= right or top >= bottom:
            return nothing
        height, width = self._input_size(prototypes)
        cells = prototypes.shape[2] / width, prototypes.shape[1] / height
        logits = np.tensordot(mixed, prototypes.astype(np.float32), 1).astype(np.float32)
        seen = [
            min(max((value * geometry.scale[axis] + geometry.offset[axis]) * cells[axis], 0.0), limit)
            for value, axis, limit in (
                (left, 0, prototypes.shape[2]),
                (top, 1, prototypes.shape[1]),
                (right, 0, prototypes.shape[2]),
                (bottom, 1, prototypes.shape[1]),
            )
        ]
        if seen[0] >= seen[2] or seen[1] >= seen[3]:
            return nothing
        shown = Image.fromarray(logits).resize(
            (right - left, bottom - top), Image.Resampling.BILINEAR, box=(seen[0], seen[1], seen[2], seen[3])
        )
        mask = np.empty((bottom - top, right - left), bool)
        step = max(1, _STRIP_PIXELS // mask.shape[1])
        for first in range(0, len(mask), step):  # numpy would copy the whole image twice
            last = min(first + step, len(mask))
            mask[first:last] = np.asarray(shown.crop((0, first, mask.shape[1], last))) > 0
        return mask

    def _input_size(self, prototypes: Array) -> tuple[int, int]:
        """Return height and width of the input; by default prototypes are a quarter as high and wide."""
        return self._size or (prototypes.shape[-2] * 4, prototypes.shape[-1] * 4)

    def _own_geometry(self, prototypes: Array) -> ImageGeometry:
        """Return the geometry of an input that was sent as a tensor: its pixels are the picture's."""
        height, width = self._input_size(prototypes)
        return ImageGeometry(width, height, (1.0, 1.0), (0.0, 0.0))


def _count_runs(mask: Array, corner: tuple[int, int], size: tuple[int, int]) -> Array:
    """Return the lengths of the runs, down the columns, of a mask that is a part of a picture.

    Args:
        mask: bool (rows, columns).
        corner: column and row of its upper left pixel.
        size: width and height of the picture.
    """
    rows = mask.shape[0] + 1  # with one below that is no part of it, so that runs end with their columns
    closed = np.zeros((mask.shape[1], rows), bool)
    closed[:, :-1] = mask.T
    columns, places = np.divmod(np.flatnonzero(np.diff(closed.reshape(-1), prepend=False)), rows)
    bounds = (columns + corner[0]) * size[1] + places + corner[1]
    gaps = bounds[1:-1].reshape(-1, 2)  # from the end of a run to the start of the next
    inner = gaps[gaps[:, 0] != gaps[:, 1]].reshape(-1)
    counts = np.diff(np.concatenate([[0], bounds[:1], inner, bounds[-1:], [size[0] * size[1]]]))
    return counts if counts[-1] else counts[:-1]


def _find_prototypes(model: TaskModel, options: InstanceConfig) -> tuple[int, int]:
    """Return the place of the output that holds prototypes, and how many it holds; the finest map there is.

    Raises:
        ModelConfigError: there is none.
    """
    name = options.prototypes
    maps = [
        (place, port.shape)
        for place, port in enumerate(model.outputs)
        if port.shape is not None
        and len(port.shape) == 4
        and (name is None or name in (port.operand, port.operator))
    ]
    rows = [shape[2] for _, shape in maps]
    if len(maps) > 1 and None in rows:
        raise _no_prototypes(model, "the sizes of maps are dynamic", "which output holds them")
    chosen = max(maps, key=lambda found: found[1][2] or 0, default=None)
    if chosen is None or chosen[1][1] is None or rows.count(chosen[1][2]) > 1:
        ports = ", ".join(map(str, model.outputs)) or "none"
        problem = f"{'more than one' if len(maps) > 1 else 'none'} of the outputs {ports} holds them"
        raise _no_prototypes(model, problem, "an output (batch, prototypes, rows, columns), the finest map")
    return chosen[0], chosen[1][1]


def _too_large(pixels: int) -> ServiceError:
    message = (
        f"the masks of all boxes would have {pixels} pixels; the maximum is {MAX_MASK_PIXELS}: ask for mask=none, "
        "for fewer boxes with max_detections, or send a smaller picture"
    )
    return ServiceError(413, "response_too_large", message, {"limit": MAX_MASK_PIXELS, "unit": "pixels"})


def _no_prototypes(model: TaskModel, problem: str, expected: str) -> ModelConfigError:
    return ModelConfigError(FILE_NAME, f"{model.config.task}.prototypes", problem, expected)
