"""Semantic segmentation: which class each pixel of a picture belongs to."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from math import log
from typing import Annotated, Any, Literal

import numpy as np
from PIL import Image
from pydantic import BaseModel, Field, GetPydanticSchema, TypeAdapter, WithJsonSchema

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.task_keys import TaskKeys
from service.config.toml_table import TomlTable
from service.decoding import leave_large
from service.errors import ServiceError
from service.images.drawing import COLOURS, Drawing
from service.images.geometry import ImageGeometry
from service.tasks.chosen_output import choose_output
from service.tasks.run_lengths import Runs, encode_counts, find_runs, sample_counts
from service.tasks.score_map import (
    PictureAxes,
    decide_pixels,
    input_size,
    picture_axes,
    sound_scores,
    spread_classes,
)
from service.tasks.task import Prediction, Task, TaskModel, TaskParameters

MaskFormat = Literal["rle", "png", "array", "none"]
NO_CLASS = 255
"""The value in a palette picture of pixels that belong to no class."""
MAX_ARRAY_PIXELS = 1 << 22
"""Maximum pixels of masks in a response that are written as numbers."""
MAX_MASK_PIXELS = 1 << 28
"""Maximum pixels of masks of all classes that may overlap; each takes a byte of memory."""
MAX_SCORES = 1 << 31
"""Maximum scores of all classes that are interpolated for the pixels of a request's pictures."""
_MAX_CLASS = 1 << 30
LARGE_SCORES = 1 << 22
"""Maximum scores of pictures that are interpolated where they are."""


class SegmentationConfig(TomlTable):
    """How an output becomes classes of pixels.

    Attributes:
        output: operator or operand name of the output: scores (batch, classes, rows, columns), or integer
            classes (batch, rows, columns) or (batch, 1, rows, columns); default: the first output.
        activation: `argmax`: one class per pixel; `sigmoid`: logits, a pixel has each class of at least
            `threshold`; `threshold`: the same for probabilities.
        threshold: minimum probability, unless the request sets it.
        background: class without regions; default: none.
        mask: encoding of masks, unless the request sets it: `rle`, `png`, `array` or `none`.
    """

    output: str | None = None
    activation: Literal["argmax", "sigmoid", "threshold"] = "argmax"
    threshold: float = Field(default=0.5, gt=0, lt=1)
    background: int | None = Field(default=None, ge=0)
    mask: MaskFormat = "rle"


class SegmentationParameters(TaskParameters):
    """What requests may set for a segmentation."""

    mask: MaskFormat | None = Field(
        default=None,
        description="rle: COCO's run lengths for each region; png: a palette picture; array: numbers; none",
    )
    threshold: float | None = Field(
        default=None, gt=0, lt=1, description="minimum probability of a class; not for argmax"
    )


class RegionView(BaseModel):
    """A class, and which pixels belong to it."""

    label: str
    index: int
    area: int
    share: float
    box: list[int] = Field(description="left, top, right and bottom")
    rle: dict[str, Any] | None = Field(default=None, description="size and counts, as COCO's tools read them")


Region = Annotated[dict[str, Any], GetPydanticSchema(lambda _, describe: describe(RegionView))]
"""The fields of a `RegionView`; `rle` where masks are returned so."""


@dataclass(frozen=True, slots=True)
class Segmentation(Prediction):
    """The classes of a picture's pixels."""

    # those of the picture, or of the output where the request sent a tensor
    width: int
    height: int
    regions: tuple[Region, ...]  # the largest first
    # pixels of no class are 255 in the PNG, and -1 in the rows; of several classes, a pixel has the most probable
    mask: Annotated[
        Any,
        WithJsonSchema(TypeAdapter(str | list[list[int]] | None).json_schema()),
        Field(description="a palette PNG in base64, or rows of classes"),
    ]


class SemanticSegmentation(Task):
    """The task of models that classify pixels.

    Raises:
        ModelConfigError: the chosen output does not exist, or holds no scores of pixels, or of another number of
            classes than there are labels.
    """

    name = "segmentation"
    keys = TaskKeys(SegmentationConfig, takes_labels=True)
    prediction = Segmentation
    parameters = SegmentationParameters
    returns_outputs = False
    draws = True

    def __init__(self, model: TaskModel) -> None:
        super().__init__(model)
        self._options = model.config.task_table(SegmentationConfig)
        self._labels = model.config.labels or ()
        self._chosen = choose_output(model.outputs, self._options.output, "segmentation.output")
        self._check(model.outputs[self._chosen])
        self._taken = input_size(model)

    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Segmentation]]:
        """Classify the pixels of each picture, in its own size.

        Args:
            outputs: the chosen one holds scores or classes of pixels.
            images: where the pictures lie in the input.
            parameters: `mask` and `threshold`; by default as configured.

        Raises:
            ServiceError: 422 `no_mask` where the input's size made an output of another shape, `invalid_parameter` for
                a threshold where each pixel belongs to the class of its highest score; 413
                `response_too_large` for arrays of more than `MAX_ARRAY_PIXELS`, or more than `MAX_MASK_PIXELS` or
                `MAX_SCORES`.
            NeedsDecoderError: there are many, and this thread leaves those to others.
        """
        maps = self._maps(outputs[self._chosen])
        if "threshold" in parameters and self._options.activation == "argmax":
            raise _without_threshold()
        form: MaskFormat = parameters.get("mask") or self._options.mask
        threshold = parameters.get("threshold") or self._options.threshold
        placed = [images[place] if place < len(images) else None for place in range(len(maps))]
        axes = [picture_axes(image, (maps.shape[3], maps.shape[2]), self._size(maps)) for image in placed]
        pixels = sum(one.across.count * one.down.count for one in axes)
        if form == "array" and pixels > MAX_ARRAY_PIXELS:
            raise _too_many(pixels)
        if self._options.activation != "argmax" and pixels * maps.shape[1] > MAX_MASK_PIXELS:
            raise _too_large(pixels, maps.shape[1], MAX_MASK_PIXELS, "pixels")
        if pixels * maps.shape[1] > MAX_SCORES:
            raise _too_large(pixels, maps.shape[1], MAX_SCORES, "scores")
        leave_large(pixels * maps.shape[1], LARGE_SCORES)
        is_argmax = self._options.activation == "argmax"
        found = [sound_scores(item, is_argmax) for item in maps]
        return [
            [] if item is None else [self._segment(item, one, form, threshold)]
            for item, one in zip(found, axes, strict=True)
        ]

    def draw(self, drawing: Drawing, predictions: Sequence[Prediction]) -> None:
        """Colour the pixels of each class; without masks, draw the box of each."""
        for one in predictions:
            if isinstance(one, Segmentation):
                shown = None if one.mask is None else _read_mask(one.mask)
                for region in one.regions:
                    sample = _sampler(region, one, shown)
                    if sample is None:
                        drawing.box(
                            region["box"], f"{region['label']} {region['share']:.2f}", region["index"]
                        )
                    else:
                        drawing.part_of_mask(region["box"], sample, region["index"])

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Say which items have no mask."""
        items = ", ".join(str(place) for place, item in enumerate(predictions) if not item)
        return (
            f"the scores of item {items} of the batch are not all numbers: there is no mask"
            if items
            else None
        )

    def _segment(self, scores: Array, axes: PictureAxes, form: MaskFormat, threshold: float) -> Segmentation:
        """Classify the pixels of one picture; scores are (classes, rows, columns)."""
        classes: Array | None
        if self._options.activation == "argmax":
            classes = self._classes(scores, axes)
            runs = _runs_of(classes)
        else:
            level = log(threshold / (1 - threshold)) if self._options.activation == "sigmoid" else threshold
            masks = decide_pixels(scores, axes, lambda found: found >= level, np.dtype(bool), unseen=0)
            classes = _best(scores, axes, masks) if form in ("png", "array") else None
            runs = _runs_of_masks(masks)
        regions = [self._region(index, found, value, form) for index, found, value in runs]
        kept = [region for region in regions if region["index"] != self._options.background]
        kept.sort(key=lambda region: (-region["area"], region["index"]))
        mask = None if classes is None else _written(classes, form)
        return Segmentation(axes.across.count, axes.down.count, tuple(kept), mask)

    def _classes(self, scores: Array, axes: PictureAxes) -> Array:
        if len(scores) == 1:  # the output holds classes already
            return spread_classes(scores[0].clip(-1, _MAX_CLASS).astype(np.int32), axes, unseen=-1)
        return decide_pixels(scores, axes, lambda found: found.argmax(axis=0), np.dtype(np.int16), unseen=-1)

    def _region(self, index: int, runs: Runs, value: int, form: MaskFormat) -> dict[str, Any]:
        area = runs.area(value)
        region = {
            "label": self._labels[index] if index < len(self._labels) else str(index),
            "index": index,
            "area": area,
            "share": round(area / (runs.width * runs.height), 6),
            "box": runs.box(value),
        }
        if form == "rle":
            size = runs.height, runs.width
            region["rle"] = {"size": size, "counts": encode_counts(runs.counts(value))}
        return region

    def _maps(self, output: Array) -> Array:
        """Return the output as (batch, classes, rows, columns)."""
        maps = output[:, None] if output.ndim == 3 else output
        is_map = self._options.activation == "argmax" and maps.shape[1:2] == (1,)
        if maps.ndim != 4 or 0 in maps.shape or maps.dtype.kind not in ("iu" if is_map else "fiu"):
            message = (
                f"the output is {output.dtype} {output.shape}; masks need (batch, classes, rows, columns)"
            )
            raise ServiceError(422, "no_mask", message, {"shape": list(output.shape)})
        return maps

    def _size(self, maps: Array) -> tuple[int, int]:
        """Return the columns and rows of the input."""
        return self._taken or (maps.shape[3], maps.shape[2])

    def _check(self, port: Port) -> None:
        key, shape = "segmentation.output", port.shape
        if shape is None:
            return
        if len(shape) not in (3, 4):
            raise ModelConfigError(FILE_NAME, key, f"shape is {port}", "(batch, classes, rows, columns)")
        classes = shape[1] if len(shape) == 4 else 1
        is_map = self._options.activation == "argmax" and classes == 1
        if is_map and port.dtype is not None and port.dtype[0] not in "iu":
            expected = 'whole numbers, or activation = "sigmoid"'
            raise ModelConfigError(
                FILE_NAME, "segmentation.activation", f"{port} has one score a pixel", expected
            )
        if self._labels and classes is not None and not is_map and classes != len(self._labels):
            expected = f"{classes}, the classes of output {port}"
            raise ModelConfigError(FILE_NAME, "labels", f"there are {len(self._labels)}", expected)


def _best(scores: Array, axes: PictureAxes, masks: Array) -> Array:
    """Return the most probable class of each pixel that has one, -1 elsewhere."""
    best = decide_pixels(scores, axes, lambda found: found.argmax(axis=0), np.dtype(np.int16), unseen=-1)
    return np.where(masks.any(axis=0), best, -1).astype(np.int16)


def _runs_of(classes: Array) -> list[tuple[int, Runs, int]]:
    """Return the classes of a map: each with runs, and with its value in them."""
    runs = find_runs(classes)
    return [(value, runs, value) for value in map(int, np.unique(runs.values)) if value >= 0]


def _runs_of_masks(masks: Array) -> list[tuple[int, Runs, int]]:
    """Return the masks that have pixels: the class of each with its runs, and with the value 1 in them."""
    found = [(index, find_runs(mask), 1) for index, mask in enumerate(masks)]
    return [one for one in found if one[1].values.any()]


def _written(classes: Array, form: MaskFormat) -> Any:
    """Return a map of classes in the form of a mask that the request asks for; None for run lengths."""
    if form == "array":
        return classes
    if form != "png":
        return None
    if classes.max() >= NO_CLASS:
        message = f"class {classes.max()} has no place in a palette of 255; ask for mask=rle or mask=array"
        raise ServiceError(422, "no_mask", message, {"limit": NO_CLASS})
    image = Image.fromarray(np.where(classes < 0, NO_CLASS, classes).astype(np.uint8), "P")
    colours = [COLOURS[index % len(COLOURS)] for index in range(NO_CLASS)]
    image.putpalette([level for colour in (*colours, (0, 0, 0)) for level in colour])
    target = BytesIO()
    image.save(target, "PNG", transparency=NO_CLASS, compress_level=3)
    return b64encode(target.getvalue()).decode("ascii")


def _read_mask(mask: Any) -> Array:
    return np.asarray(Image.open(BytesIO(b64decode(mask)))) if isinstance(mask, str) else np.asarray(mask)


def _sampler(
    region: dict[str, Any], one: Segmentation, shown: Array | None
) -> Callable[[Array, Array], Array] | None:
    """Return which pixels of rows and columns belong to a region; None where there is no mask."""
    if shown is not None:
        return lambda rows, columns: shown[rows[:, None], columns] == region["index"]
    return partial(sample_counts, region["rle"]["counts"], one.height) if "rle" in region else None


def _without_threshold() -> ServiceError:
    message = (
        "parameter 'threshold' is given, but a pixel belongs to the class of its highest score; expected mask"
    )
    return ServiceError(422, "invalid_parameter", message, {"parameter": "threshold", "expected": "mask"})


def _too_large(pixels: int, classes: int, limit: int, unit: str) -> ServiceError:
    message = f"masks of {pixels} pixels for {classes} classes are too many; send a smaller picture"
    return ServiceError(413, "response_too_large", message, {"limit": limit, "unit": unit})


def _too_many(pixels: int) -> ServiceError:
    message = (
        f"masks of {pixels} pixels are too many numbers; the maximum is {MAX_ARRAY_PIXELS}: ask for mask=rle"
    )
    return ServiceError(413, "response_too_large", message, {"limit": MAX_ARRAY_PIXELS, "unit": "pixels"})
