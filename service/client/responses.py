"""What calls give."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from service.client.errors import ResponseError
from service.client.inputs import Array


@dataclass(frozen=True, slots=True)
class Result:
    """The outputs of a run.

    Attributes:
        outputs: an array for each output, by the name of its operand, in the model's order.
        captured: an array for each operand that was asked for, by name.
        request_id: id of the request, by which the server's log and `/traces` name it.
    """

    outputs: Mapping[str, Array]
    captured: Mapping[str, Array] = field(default_factory=dict)
    request_id: str | None = None

    def __getitem__(self, name: str | int) -> Array:
        """Return an output by name, or by its place."""
        return list(self.outputs.values())[name] if isinstance(name, int) else self.outputs[name]


@dataclass(frozen=True, slots=True)
class InferResponse:
    """What the outputs of a run mean.

    Attributes:
        model: the model.
        version: its version.
        predictions: for each item of the batch its predictions, with the fields of the model's task; empty for a raw
            model.
        outputs: the arrays that they were made of, by the names of the operands.
        warnings: what is doubtful about them.
        timing: milliseconds of each stage at the server, by its name.
        request_id: id of the request.
        fields: all fields of the response, as the server's API describes them, without the data of arrays.
    """

    model: str
    version: str
    predictions: list[list[dict[str, Any]]]
    outputs: Mapping[str, Array]
    warnings: list[str]
    timing: Mapping[str, float]
    request_id: str
    fields: Mapping[str, Any]


class Box(NamedTuple):
    """A box in pixels of the picture that was sent: its left upper corner, and its right lower one."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Detection:
    """Something that was found in a picture.

    Attributes:
        label: the name of its class.
        index: the number of its class.
        probability: how probable that class is, 0 to 1.
        box: where it is.
        fields: the prediction as the server answers it: masks and keypoints are here.
    """

    label: str
    index: int
    probability: float
    box: Box
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a prediction is what it is.

    Attributes:
        method: `occlusion`, `score-cam` or `words`.
        target: the prediction, with the fields of the model's task.
        runs: inputs that the model was run on.
        heatmap: (rows, columns) over the region: by how much the score falls without each part; of Score-CAM, from 0
            to 1. None for a text.
        region: part of the picture that the heatmap covers, in pixels of the picture; None for a text.
        overlay: the picture as PNG with the heatmap laid over it; None where there was no picture.
        words: the words of a text, each with `text`, `start`, `end` and `importance`.
    """

    method: str
    target: Mapping[str, Any]
    runs: int
    heatmap: Array | None
    region: Box | None
    overlay: bytes | None
    words: list[dict[str, Any]]


def read_explanation(fields: Mapping[str, Any]) -> Explanation:
    """Return what a response of `:explain` says.

    Raises:
        ResponseError: it is none.
    """
    try:
        heatmap, region, overlay = fields["heatmap"], fields["region"], fields["overlay"]
        return Explanation(
            fields["method"],
            fields["target"],
            fields["runs"],
            None if heatmap is None else np.array(heatmap, np.float64),
            None if region is None else Box(*region),
            None if overlay is None else b64decode(overlay),
            fields["words"] or [],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ResponseError(f"the response is not one of :explain: {error!r}") from error


class Operand(NamedTuple):
    """An operand as a layer took or gave it.

    Attributes:
        name: its name.
        shape: its shape; None where it is no tensor.
        dtype: its dtype in PNNX's words, such as `f32`.
        statistics: `min`, `max`, `mean`, `std`, `nan` and `inf` of an output where they were asked for, else None.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    statistics: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's part in a run.

    Attributes:
        index: its place in execution order.
        name: the operator's name.
        type: its PNNX type.
        inputs: what it took.
        outputs: what it gave.
        start_ms: milliseconds from the start of the run.
        duration_ms: milliseconds that it took.
        share: part of the time of all layers, 0 to 1.
        multiply_adds: its multiply-adds.
        backend: `native`, `numpy` or `folded`.
        fused: layers whose work its kernel did too.
        fused_into: the layer whose kernel did its work, or None.
    """

    index: int
    name: str
    type: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    start_ms: float
    duration_ms: float
    share: float
    multiply_adds: int
    backend: str
    fused: tuple[str, ...]
    fused_into: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """What ran, and for how long.

    Attributes:
        total_ms: milliseconds of the run.
        layers: every layer in execution order.
        response: predictions and timing of the same run.
    """

    total_ms: float
    layers: tuple[Layer, ...]
    response: InferResponse


def read_response(fields: Any, arrays: Mapping[str, Array]) -> InferResponse:
    """Return a response of `/infer` with types.

    Args:
        fields: its JSON.
        arrays: its outputs.

    Raises:
        ResponseError: it is no such response.
    """
    try:
        return InferResponse(
            model=fields["model"],
            version=fields["version"],
            predictions=fields.get("predictions") or [],
            outputs=arrays,
            warnings=fields.get("warnings") or [],
            timing={name: value for name, value in fields["timing"].items() if name.endswith("_ms")},
            request_id=fields["request_id"],
            fields=fields,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _unlike("/infer", error) from error


def read_trace(fields: Any, arrays: Mapping[str, Array]) -> Trace:
    """Return a response of `/infer` with a trace; arguments as for `read_response`.

    Raises:
        ResponseError: it is no such response.
    """
    response = read_response(fields, arrays)
    try:
        trace = fields["trace"]
        return Trace(trace["total_ms"], tuple(_layer(layer) for layer in trace["layers"]), response)
    except (KeyError, TypeError) as error:
        raise _unlike("/infer with a trace", error) from error


def read_detections(response: InferResponse) -> list[list[Detection]]:
    """Return what was found in each picture of a response.

    Raises:
        ResponseError: the model's task finds no boxes.
    """
    try:
        return [[_detection(found) for found in item] for item in response.predictions]
    except (KeyError, TypeError, ValueError) as error:
        message = f"model {response.model} predicts no boxes: its task is another one, or it has none"
        raise ResponseError(message) from error


def _detection(found: Mapping[str, Any]) -> Detection:
    return Detection(
        found["label"], found["index"], found["probability"], Box(*map(float, found["box"])), found
    )


def _layer(layer: Mapping[str, Any]) -> Layer:
    return Layer(
        index=layer["index"],
        name=layer["name"],
        type=layer["type"],
        inputs=tuple(_operand(operand) for operand in layer["inputs"]),
        outputs=tuple(_operand(operand) for operand in layer["outputs"]),
        start_ms=layer["start_ms"],
        duration_ms=layer["duration_ms"],
        share=layer["share"],
        multiply_adds=layer["multiply_adds"],
        backend=layer["backend"],
        fused=tuple(layer["fused"]),
        fused_into=layer["fused_into"],
    )


def _operand(operand: Mapping[str, Any]) -> Operand:
    shape = operand["shape"]
    return Operand(
        operand["name"], None if shape is None else tuple(shape), operand["dtype"], operand.get("statistics")
    )


def _unlike(path: str, error: Exception) -> ResponseError:
    return ResponseError(f"the response is not one of {path}: {error!r}")
