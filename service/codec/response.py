"""The response to `/infer`, before it becomes bytes; and any response as bytes that are ready to be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

import numpy as np

from engine import LayerTrace, OperandTrace, Port, RunResult, RunTrace, Statistics, Value, pnnx_name
from service.codec.decoded import Picture
from service.codec.json_text import json_number
from service.tasks import Prediction

BytesLike = bytes | bytearray | memoryview
"""Contiguous bytes; each item of a memoryview is one byte."""
ResponseDocument = dict[str, Any]
"""`model`, `version`, `request_id`, `outputs` and `timing`, and what there is of `predictions`, `warnings`, `images`,
`captured` and `trace`.

Tensors are still numpy arrays.
"""


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """An encoded response.

    Attributes:
        pieces: the bytes of its body; arrays among them are sent from where they lie, without a copy.
        media_type: its `Content-Type`.
        headers: its other headers.
    """

    pieces: Sequence[BytesLike]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Number of bytes of its body."""
        return sum(map(len, self.pieces))

    @property
    def body(self) -> bytes:
        """Its body, in one piece."""
        return b"".join(self.pieces)


def build_response(
    model: str,
    version: str,
    request_id: str,
    ports: Sequence[Port],
    result: RunResult,
    predictions: Sequence[Sequence[Prediction]] | None,
    timing: Mapping[str, float],
    warning: str | None = None,
    pictures: Sequence[Picture] = (),
    is_observed: bool = False,
) -> ResponseDocument:
    """Build the response to a request.

    Args:
        model: name of the model.
        version: its version.
        request_id: id of the request.
        ports: the graph's outputs, as `graph.outputs` gives them.
        result: what the run gave.
        predictions: for each item of the batch its predictions, best first; None where the model has none.
        timing: `decode_ms`, `queue_ms` and `forward_ms`.
        warning: the warning about the predictions, for the client.
        pictures: the pictures that inputs were made of.
        is_observed: whether the run captured operands or took statistics, which takes longer than others.

    Returns:
        A dict for `encode`; `predictions`, `warnings`, `images`, `captured` and `trace` are left out where there are
        none.
    """
    response: ResponseDocument = {"model": model, "version": version, "request_id": request_id}
    if predictions is not None:
        response["predictions"] = describe_predictions(predictions)
    warnings = [*([] if warning is None else [warning]), *_picture_warnings(pictures)]
    if warnings:
        response["warnings"] = warnings
    if pictures:
        response["images"] = [_picture(picture) for picture in pictures]
    named = zip(_names(ports, len(result.outputs)), result.outputs, strict=True)
    response["outputs"] = [{"name": name} | _value(value) for name, value in named]
    response["timing"] = {stage: _milliseconds(value) for stage, value in timing.items()}
    response["timing"] |= _mark(is_observed)
    if result.captured:
        response["captured"] = [
            {"name": name} | _backend(result.captured_by.get(name)) | _value(value)
            for name, value in result.captured.items()
        ]
    if result.trace is not None:
        response["trace"] = describe_trace(result.trace)
    return response


def _picture_warnings(pictures: Sequence[Picture]) -> list[str]:
    """Return the warnings about pictures, for the client."""
    names = (
        ["the image"] if len(pictures) == 1 else [f"image {place}" for place in range(1, len(pictures) + 1)]
    )
    return [
        f"{name} is animated: its first frame was read"
        for name, picture in zip(names, pictures, strict=True)
        if picture.is_animated
    ]


def describe_predictions(predictions: Sequence[Sequence[Prediction]]) -> list[list[dict[str, Any]]]:
    """Describe predictions as responses show them."""
    return [[_prediction(one) for one in item] for item in predictions]


def leave_out_data(response: ResponseDocument) -> None:
    """Leave the elements of the outputs out of a response, which then holds their names, shapes and dtypes."""
    for output in response["outputs"]:
        del output["data"]


def complete_timing(
    response: ResponseDocument, received_ns: int, started_ns: int, ended_ns: int
) -> dict[str, float | bool]:
    """Return a response's `timing`, completed by the two times that are known only after its serialisation.

    Args:
        response: what `build_response` gave.
        received_ns: when the request was complete.
        started_ns: when serialisation began.
        ended_ns: when it ended.
    """
    times = {"encode_ms": ended_ns - started_ns, "total_ms": ended_ns - received_ns}
    return {**response["timing"], **{key: _milliseconds(value / 1e6) for key, value in times.items()}}


def _names(ports: Sequence[Port], count: int) -> list[str]:
    """Name the outputs; only a run shows how many tensors an operand holds that carries a list."""
    if len(ports) == count:
        return [port.operand for port in ports]
    return [f"output_{index}" for index in range(count)]


def _picture(picture: Picture) -> dict[str, Any]:
    geometry = picture.geometry
    return {
        "input": picture.input,
        "width": geometry.width,
        "height": geometry.height,
        "scale": geometry.scale,
        "offset": geometry.offset,
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    kind = type(prediction)
    if kind not in _FIELD_NAMES:
        _FIELD_NAMES[kind] = tuple(field.name for field in fields(kind))
    members: dict[str, Any] = {}
    for name in _FIELD_NAMES[kind]:
        value = getattr(prediction, name)
        is_plain = isinstance(value, _PLAIN) or (isinstance(value, float) and isfinite(value))
        members[name] = value if is_plain else _member(value)
    return members


_FIELD_NAMES: dict[type[Prediction], tuple[str, ...]] = {}
"""Names of the fields of each kind of prediction in the response."""
_PLAIN = (str, int)
"""Types of a prediction's fields that JSON represents as they are."""


def _member(value: Any) -> Any:
    """Convert a field of a prediction to a value that JSON can represent."""
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, dict):
        return {key: _member(item) for key, item in value.items()}
    return [_member(item) for item in value] if isinstance(value, tuple) else value


def _value(value: Value) -> dict[str, Any]:
    """Describe a value: `data` is an array, the described items of a tuple, or a scalar."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return {"shape": list(array.shape), "dtype": pnnx_name(array.dtype), "data": array}
    data: Any = value
    if isinstance(value, tuple | list):
        data = [_value(item) for item in value]
    elif isinstance(value, complex):
        data = [json_number(value.real), json_number(value.imag)]
    elif isinstance(value, float):
        data = json_number(value)
    return {"shape": None, "dtype": type(value).__name__, "data": data}


def describe_trace(trace: RunTrace) -> dict[str, Any]:
    """Describe a trace as responses show it: `total_ms`, `observed`, `pieces` where that is so, and `layers`."""
    return {
        "total_ms": _milliseconds(trace.total_us / 1000),
        **_mark(trace.is_observed),
        **({"pieces": list(trace.pieces)} if trace.pieces else {}),
        "layers": [_layer(layer) for layer in trace.layers],
    }


def _backend(name: str | None) -> dict[str, str]:
    """Name the backend that computed a value, if it is known."""
    return {} if name is None else {"backend": name}


def _mark(is_observed: bool) -> dict[str, bool]:
    """Mark the times of an observed run; those of other runs have no mark."""
    return {"observed": True} if is_observed else {}


def _layer(layer: LayerTrace) -> dict[str, Any]:
    return {
        "index": layer.index,
        "name": layer.name,
        "type": layer.type,
        "inputs": [_operand(operand) for operand in layer.inputs],
        "outputs": [_operand(operand) for operand in layer.outputs],
        "start_ms": _milliseconds(layer.start_us / 1000),
        "duration_ms": _milliseconds(layer.duration_us / 1000),
        "share": round(layer.share, 6),
        "multiply_adds": layer.multiply_adds,
        "bytes": layer.bytes_moved,
        "backend": layer.backend,
        "fused": list(layer.fused),
        "fused_into": layer.fused_into,
        "precision": layer.precision,
    }


def _operand(operand: OperandTrace) -> dict[str, Any]:
    described: dict[str, Any] = {"name": operand.name, "shape": operand.shape, "dtype": operand.dtype}
    if operand.statistics is not None:
        described |= {"statistics": _statistics(operand.statistics)} | _backend(operand.backend)
    return described


def _statistics(statistics: Statistics) -> dict[str, Any]:
    return {
        "min": json_number(statistics.minimum),
        "max": json_number(statistics.maximum),
        "mean": json_number(statistics.mean),
        "std": json_number(statistics.std),
        "nan": statistics.nan,
        "inf": statistics.inf,
    }


def _milliseconds(value: float) -> float:
    """Round to a tenth of a microsecond; further digits say nothing."""
    return round(value, 4)
