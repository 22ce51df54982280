"""Determines which head of a YOLO network a graph has, from the shapes of its outputs and from `model.toml`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from engine import Array, Port
from service.config.model_config import FILE_NAME, ModelConfigError
from service.config.toml_table import TomlTable
from service.tasks.task import TaskModel
from service.tasks.yolo_anchors import stored_anchors
from service.tasks.yolo_heads import DecodedV5Head, DecodedV8Head, Head, RawV5Head
from service.tasks.yolo_v8_parts import RawParts, find_parts
from service.tasks.yolo_v8_raw import BINS, RawV8Head

HeadName = Literal["auto", "yolov5", "yolov5-raw", "yolov8", "yolov8-raw"]
_DETECT = "models.yolo.Detect"
_STRIDES = (8.0, 16.0, 32.0)
_ANCHORS = 3
"""Anchors of a map, unless `model.toml` gives others."""
_Positive = Annotated[float, Field(gt=0)]
_MapAnchors = Annotated[tuple[_Positive, ...], Field(strict=False, min_length=2)]
_Dim = int | None


class BoxesConfig(TomlTable):
    """How outputs become boxes with labels.

    Attributes:
        head: head type; auto: inferred from the output shapes.
        output: operator or operand name of the decoded boxes; default: the output that fits.
        anchors: for raw heads of YOLOv5: per map, the finest first, width, height, width, … in input
            pixels; default: those in the file.
        strides: input pixels per cell of each map; default: input size over map size.
        confidence: minimum score of a box.
        iou: NMS: IoU above which only the higher-scored of two boxes is kept; default: 0.45 for heads of YOLOv5, 0.7
            for others.
        class_agnostic: NMS across classes, for classes that exclude each other.
        max_detections: maximum boxes per image.
    """

    head: HeadName = "auto"
    output: str | None = None
    anchors: Annotated[tuple[_MapAnchors, ...], Field(strict=False)] | None = None
    strides: Annotated[tuple[_Positive, ...], Field(strict=False)] | None = None
    confidence: float = Field(default=0.25, ge=0, lt=1)
    iou: float | None = Field(default=None, ge=0, le=1)
    class_agnostic: bool = False
    max_detections: int = Field(default=300, ge=1, le=1000)

    @model_validator(mode="after")
    def _check_anchors(self) -> Self:
        if self.anchors is not None and len({len(sizes) for sizes in self.anchors}) > 1:
            raise ValueError("anchors: the maps have different numbers of them; expected as many for each")
        if self.anchors is not None and len(self.anchors[0]) % 2:
            raise ValueError("anchors: a width has no height; expected width, height, width, height, …")
        return self


@dataclass(frozen=True, slots=True)
class Extra:
    """What a box has besides its place and its classes.

    Attributes:
        count: how many values.
        dimensions: values of a point, where they are points: x, y, and how probable it is; else None.
        taken: place of an output that holds other things; None where there is none.
    """

    count: int = 0
    dimensions: int | None = None
    taken: int | None = None


def find_head(model: TaskModel, options: BoxesConfig, extra: Extra) -> Head:
    """Return the head of a graph.

    Args:
        model: the model.
        options: the table of the model's task.
        extra: what its boxes have besides.

    Raises:
        ModelConfigError: none fits, several do, or a key contradicts the graph.
    """
    return _Finder(model, options, extra).find()


class _Finder:
    def __init__(self, model: TaskModel, options: BoxesConfig, extra: Extra) -> None:
        self._model, self._options = model, options
        self._extra, self._dimensions = extra.count, extra.dimensions
        self._classes = None if model.config.labels is None else len(model.config.labels)
        self._size = input_size(model)
        self._strides = options.strides or _STRIDES
        self._cells = self._count_cells()
        self._ports = [pair for pair in enumerate(model.outputs) if pair[0] != extra.taken]

    def find(self) -> Head:
        fitting = self._decoded() or self._maps()
        asked = self._options.head
        chosen = {name: make for name, make in fitting.items() if asked in ("auto", name)}
        if len(chosen) == 1:
            return next(iter(chosen.values()))()
        ports = ", ".join(map(str, self._model.outputs)) or "none"
        known = "" if self._classes is None else f" for {self._classes} labels"
        if chosen:
            problem = f"the outputs {ports} may be those of {' or '.join(chosen)}{known}"
            expected = "head, or labels, to determine which"
        else:
            what = "any head that is known" if asked == "auto" else f"a head {asked}"
            problem = f"the outputs {ports} do not fit {what}{known}"
            expected = self._expected()
        raise self._error("head", problem, expected)

    def _decoded(self) -> dict[str, Callable[[], Head]]:
        """Return the heads that outputs of rank 3 may be of; those that decode themselves come first."""
        found: dict[str, Callable[[], Head]] = {}
        ports = self._named()
        for place, port in ports:
            if port.shape is None or len(port.shape) != 3:
                continue
            _, first, second = port.shape
            if self._is_detect(port):
                return {"yolov5": lambda place=place: DecodedV5Head([place])}  # type: ignore[misc]
            if not self._extra and self._is_boxes(first) and _fits(second, self._plus(5)):
                found["yolov5"] = lambda place=place: DecodedV5Head([place])  # type: ignore[misc]
            cells_first = self._is_cells_first(first, second)
            cells, values = (first, second) if cells_first else (second, first)
            if _fits(cells, self._cells) and _fits(
                values, self._plus(4 + self._extra), least=5 + self._extra
            ):
                found["yolov8"] = partial(DecodedV8Head, [place], self._extra, cells_first)
        joined = self._parts([(place, port) for place, port in ports if _has_rank(port, 3)])
        if joined:
            found["yolov8-raw"] = lambda: self._raw_v8(joined)
        return found

    def _is_cells_first(self, first: _Dim, second: _Dim) -> bool:
        """Return whether an output of rank 3 is (batch, cells, values), as far as its shape says."""
        if self._cells is not None:
            return first == self._cells != second
        return first is None and second is not None

    def _maps(self) -> dict[str, Callable[[], Head]]:
        """Return the heads that outputs which are maps may be of."""
        found: dict[str, Callable[[], Head]] = {}
        anchors = self._anchors()
        v5 = [place for place, port in self._ports if self._is_v5_map(port, anchors)]
        v8 = self._parts(self._ports)
        if not self._extra and len(v5) > 1 and (anchors is not None or self._classes is not None):
            found["yolov5-raw"] = lambda: self._raw_v5(v5, anchors)
        if v8:
            found["yolov8-raw"] = lambda: self._raw_v8(v8)
        if anchors is not None and "yolov5-raw" in found and self._classes is None:
            found.pop("yolov8-raw", None)  # anchors are of no use to it
        return found

    def _parts(self, ports: Sequence[tuple[int, Port]]) -> list[RawParts]:
        return find_parts(ports, self._classes, self._extra, self._cells, self._ordered)

    def _raw_v8(self, ways: Sequence[RawParts]) -> Head:
        if len(ways) > 1:
            ports = ", ".join(map(str, self._model.outputs))
            problem = f"the outputs {ports} may be read as yolov8-raw in more than one way"
            raise self._error("head", problem, "labels, for the number of channels that are classes")
        (parts,) = ways
        strides = self._strides_of(parts.maps) if parts.maps else self._strides
        return RawV8Head(parts.boxes, parts.classes, parts.extra, strides, self._size, self._dimensions)

    def _raw_v5(self, places: Sequence[int], anchors: Array | None) -> Head:
        strides = self._strides_of(places)
        if anchors is None:
            anchors = self._stored_anchors(strides, self._ordered(places) != list(places))
        if len(anchors) != len(places):
            problem = f"there are {len(places)} maps, and anchors for {len(anchors)}"
            raise self._error("anchors", problem, "a list for each map, the finest first")
        return RawV5Head(self._ordered(places), anchors, strides)

    def _stored_anchors(self, strides: Sequence[float], coarsest_first: bool) -> Array:
        """Return the anchors that the file holds, three for each map."""
        found = stored_anchors(self._model.operators, strides, coarsest_first)
        fitting = [anchors for anchors in found if anchors.shape[1] == _ANCHORS]
        if len(fitting) != 1:
            held = "holds several that fit" if fitting else "does not hold them"
            problem = f"are not given, and the file {held}"
            raise self._error("anchors", problem, "for each map width, height, width, … in pixels")
        return fitting[0]

    def _is_v5_map(self, port: Port, anchors: Array | None) -> bool:
        count = _ANCHORS if anchors is None else anchors.shape[1]
        if _has_rank(port, 5):
            return _fits(_dim(port, 1), count) and _fits(_dim(port, 4), self._plus(5), least=6)
        channels = _dim(port, 1)
        wanted = None if self._classes is None else count * (5 + self._classes)
        return _has_rank(port, 4) and _fits(channels, wanted) and (channels is None or channels % count == 0)

    def _ordered(self, places: Sequence[int]) -> list[int]:
        """Return the places of maps, the finest first."""
        return sorted(places, key=lambda place: -(self._rows(place) or 0))

    def _rows(self, place: int) -> int | None:
        port = self._model.outputs[place]
        return _dim(port, 2)

    def _strides_of(self, places: Sequence[int]) -> tuple[float, ...]:
        if self._options.strides is not None:
            if len(self._options.strides) != len(places):
                problem = f"there are {len(self._options.strides)}, and {len(places)} maps"
                raise self._error("strides", problem, "one for each map, the finest first")
            return self._options.strides
        rows = [self._rows(place) for place in self._ordered(places)]
        if self._size is None or any(count is None for count in rows):
            problem = "are not given, and the file leaves the sizes of the input or of the maps open"
            raise self._error("strides", problem, "pixels of the input per cell of each map")
        return tuple(self._size[0] / count for count in rows if count)

    def _anchors(self) -> Array | None:
        given = self._options.anchors
        return None if given is None else np.array(given).reshape(len(given), -1, 2)

    def _count_cells(self) -> int | None:
        if self._size is None:
            return None
        return sum(int(self._size[0] // stride) * int(self._size[1] // stride) for stride in self._strides)

    def _is_boxes(self, count: _Dim) -> bool:
        """Return whether a dimension may count YOLOv5's boxes: some for each cell."""
        if count is None:
            return self._classes is not None
        return self._cells is None or (count >= self._cells and count % self._cells == 0)

    def _is_detect(self, port: Port) -> bool:
        return any(
            operator.type == _DETECT and any(operand.name == port.operand for operand in operator.outputs)
            for operator in self._model.operators
        )

    def _named(self) -> list[tuple[int, Port]]:
        """Return the outputs that may hold boxes."""
        ports, name = self._ports, self._options.output
        if name is None:
            return ports
        named = [(place, port) for place, port in ports if name in (port.operand, port.operator)]
        if not named:
            known = ", ".join(port.operand for port in self._model.outputs) or "an output"
            raise self._error("output", f"the graph has no output {name!r}", known)
        return named

    def _plus(self, count: int) -> int | None:
        """Return the number of classes and some more; None where the number of classes is not known."""
        return None if self._classes is None else self._classes + count

    def _expected(self) -> str:
        size = "" if self._cells is None else f" of an input of {self._size}"
        cells = "cells" if self._cells is None else f"{self._cells} cells"
        more = f" + {self._extra}" if self._extra else ""
        return (
            f"(batch, boxes, 5 + classes), (batch, 4 + classes{more}, {cells}){size}, or maps of "
            f"anchors * (5 + classes) or {4 * BINS} + classes{more} channels"
        )

    def _error(self, key: str, problem: str, expected: str) -> ModelConfigError:
        return ModelConfigError(FILE_NAME, f"{self._model.config.task}.{key}", problem, expected)


def input_size(model: TaskModel) -> tuple[int, int] | None:
    """Return height and width of the pictures that a model takes; None where they are dynamic."""
    image = model.config.image
    if image is not None and image.size is not None:
        return image.size
    shape = model.inputs[0].shape if model.inputs else None
    if shape is None or len(shape) < 3 or shape[-1] is None or shape[-2] is None:
        return None
    return shape[-2], shape[-1]


def _has_rank(port: Port, rank: int) -> bool:
    return port.shape is not None and len(port.shape) == rank


def _dim(port: Port, axis: int) -> _Dim:
    return None if port.shape is None else port.shape[axis]


def _fits(dim: _Dim, wanted: int | None, least: int = 0) -> bool:
    """Return whether a dimension may be the one that is wanted, as far as both are known."""
    return dim is None or (dim >= least if wanted is None else dim == wanted)
