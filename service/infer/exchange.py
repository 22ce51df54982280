"""One request to `POST /infer` and its response: decodes the body to the inputs of a graph, encodes the run."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar

import numpy as np
from starlette.datastructures import QueryParams
from starlette.requests import Request

from engine import Array, KuiperError, RunResult, RuntimeGraph, TensorSpec, TraceLevel, Value
from service.codec import (
    JSON_TYPE,
    Decoded,
    Options,
    Picture,
    build_response,
    decode,
    encode,
    leave_out_data,
    negotiate,
    parse_options,
)
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.context import Peer, context_of
from service.errors import ServiceError, did_you_mean, shown
from service.images.geometry import ImageGeometry
from service.infer.rendering import PNG_TYPE, check_drawable, render
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job, ProtocolName, Timestamps
from service.tasks import Prediction, Task

DEFAULTS = Options(trace=TraceLevel.ON, capture=())
"""Options of a request that sets none."""
_TIMEOUT = "timeout"
_HEAD_NAMES = ("model", "version", _TIMEOUT)
"""Parameters that are read before the body, and are no options that it may set as well."""


@dataclass(slots=True)
class InferExchange:
    """A request to run a model, and its response. A worker calls `decode`, then `encode`, each until it is done once.

    Attributes:
        model: the model.
        request_id: id of the request.
        body: the request's whole body; dropped when it is decoded.
        content_type: its `Content-Type` header.
        options: what the query asks for; completed by what the body asks for when it is decoded.
        media_type: media type of the response.
        limits: how much the request may ask for.
        timestamps: those of its job.
        client: who sent the request.
        timeout: timeout of the request in seconds; None for the default.
        pictures: those of the body, once it is decoded; their bytes only where they are drawn on.
        token_counts: how many tokens its texts have, once it is decoded.
    """

    model: LoadedModel
    request_id: str
    body: bytes
    content_type: str | None
    options: Options
    media_type: str
    limits: Limits
    timestamps: Timestamps = field(default_factory=Timestamps)
    client: Peer = ""
    timeout: float | None = None
    pictures: tuple[Picture, ...] = ()
    token_counts: tuple[int, ...] = ()

    name: ClassVar = ProtocolName.INFER
    takes_encoded_body: ClassVar = False
    padding: ClassVar = 0

    @classmethod
    def from_request(cls, request: Request, model: LoadedModel, limits: Limits) -> "InferExchange":
        """Return the exchange of a request whose body has not arrived yet.

        Raises:
            ServiceError: 422 `invalid_parameter`, 406 `not_acceptable`.
        """
        context, query = context_of(request), request.query_params
        return cls(
            model=model,
            request_id=context.request_id,
            body=b"",
            content_type=_header(request, "content-type"),
            options=_parse_query(query, model.task),
            timeout=_parse_timeout(query.get(_TIMEOUT)),
            media_type=negotiate(_header(request, "accept"), (PNG_TYPE,)),
            limits=limits,
            client=context.client,
        )

    def is_unpacked_first(self, size: int) -> bool:
        """Return false: a worker decodes the body, whatever its size."""
        del size
        return False

    def call(self, body: bytes, received_ns: int) -> Job[EncodedResponse]:
        """Return the call. Raises nothing: the body is decoded later, by a worker."""
        self.body, self.timestamps.received = body, received_ns
        return Job(
            model=self.model,
            protocol=self.name,
            request_id=self.request_id,
            decode=self.decode,
            encode=self.encode,
            timestamps=self.timestamps,
            client=self.client,
            timeout=self.timeout,
        )

    def decode(self) -> Decoded:
        """Return the inputs, and all options that are in force.

        Raises:
            ServiceError: the body or its options are not what the model can take, or ask for too large a response.
            NeedsDecoderError: the body is large, and this thread leaves those to others, which call this again.
        """
        graph = self.model.graph
        decoded = decode(
            self.body,
            self.content_type,
            graph.inputs,
            self.model.config,
            self.limits,
            dynamic_batch=self.model.batching.max_batch_size > 1,
        )
        self.options = DEFAULTS.overridden_by(decoded.options).overridden_by(self.options)
        if decoded.pictures:
            self.pictures = decoded.pictures
        self.token_counts = decoded.token_counts
        self._choose_media_type()
        if self.options.capture:
            named = find_operands(graph, self.options.capture)
            self.options = replace(self.options, capture=named)
            binary, text = planned_size(graph, decoded.inputs, named)
            self.limits.check_response(binary)
            if self.media_type == JSON_TYPE:
                self.limits.check_text(text)
        self.body = b""
        return Decoded(decoded.inputs, self.options, decoded.pictures if self.model.steps else ())

    def encode(self, result: RunResult) -> EncodedResponse:
        """Return the response.

        Raises:
            ServiceError: 413 `response_too_large`; 422 where the task cannot read the outputs.
            NeedsDecoderError: the picture is large, and this thread leaves those to others, which call this again.
        """
        ports, timestamps = self.model.graph.outputs, self.timestamps
        self.limits.check_response(array_bytes([*result.outputs, *result.captured.values()]))
        items: Sequence[Any] = geometries(self.pictures) if self.pictures else self.token_counts
        predictions = self.model.task.predict(result.outputs, items, self.options.task)
        if self.media_type == PNG_TYPE:
            return self._draw(predictions)
        timing = {
            "decode_ms": (timestamps.decode_end - timestamps.decode_start) / 1e6,
            "queue_ms": timestamps.queue_ns / 1e6,
            "forward_ms": (timestamps.forward_end - timestamps.forward_start) / 1e6,
        }
        warning = None if predictions is None else self.model.task.remark(predictions)
        response = build_response(
            self.model.name,
            self.model.version,
            self.request_id,
            ports,
            result,
            predictions,
            timing,
            warning,
            self.pictures,
            self.options.is_observed,
        )
        if self.media_type == JSON_TYPE and not self._returns_outputs:
            leave_out_data(response)
        return EncodedResponse(
            encode(response, self.media_type, timestamps.received, limits=self.limits), self.media_type
        )

    @property
    def _returns_outputs(self) -> bool:
        """Whether the response holds the elements of the outputs."""
        asked = self.options.outputs
        return self.model.task.returns_outputs if asked is None else asked

    def _choose_media_type(self) -> None:
        """Decide whether the response is a picture, and keep the picture's bytes only in that case."""
        if self.options.render:
            self.media_type = PNG_TYPE
        elif self.options.render is False and self.media_type == PNG_TYPE:
            self.media_type = JSON_TYPE
        if self.media_type == PNG_TYPE:
            check_drawable(self.model.task, self.pictures)
        elif self.pictures:
            self.pictures = tuple(replace(picture, data=b"") for picture in self.pictures)

    def _draw(self, predictions: Sequence[Sequence[Prediction]] | None) -> EncodedResponse:
        """Respond with the picture, predictions drawn on it."""
        config = self.model.config.image
        picture = (
            b""
            if config is None
            else render(self.model.task, self.pictures[0], predictions, config, self.limits)
        )
        return EncodedResponse((picture,), PNG_TYPE)


def geometries(pictures: Sequence[Picture]) -> tuple[ImageGeometry, ...]:
    """Return where pictures lie in the first input that has some; none where there are none."""
    return tuple(picture.geometry for picture in pictures if picture.input == pictures[0].input)


def find_operands(graph: RuntimeGraph, names: Collection[str]) -> tuple[str, ...]:
    """Return the names of operands; those of an operator that a name is of are all that it gives.

    Raises:
        ServiceError: 422 `unknown_operand`.
    """
    found: dict[str, None] = {}
    operators = {operator.name: operator for operator in graph.operators}
    for name in names:
        if name in graph.operands:
            found[name] = None
        elif name in operators and operators[name].outputs:
            found |= dict.fromkeys(operand.name for operand in operators[name].outputs)
        else:
            known = [*graph.operands, *operators]
            nearest = difflib.get_close_matches(name[:80], known, n=3, cutoff=0.3)
            message = (
                f"capture: the graph has no operand or operator {name[:80]!r}; GET /graph lists them all"
            )
            message += did_you_mean(name, known)
            raise ServiceError(422, "unknown_operand", message, {"operand": name[:80], "nearest": nearest})
    return tuple(found)


def _header(request: Request, name: str) -> str | None:
    """Return a header; lines of the same name are one list, with commas between (RFC 9110, 5.3)."""
    return ", ".join(request.headers.getlist(name)) or None


def _parse_query(query: QueryParams, task: Task) -> Options:
    values = {name: value for name, value in query.items() if name not in _HEAD_NAMES}
    if "capture" in values:
        values["capture"] = ",".join(query.getlist("capture"))
    return parse_options(values, task.parameters, _HEAD_NAMES)


def _parse_timeout(text: str | None) -> float | None:
    """Read the timeout of a request in seconds; None where it has none.

    Raises:
        ServiceError: 422 `invalid_parameter`.
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        details = {"parameter": _TIMEOUT, "expected": "seconds, more than 0"}
        raise ServiceError(
            422, "invalid_parameter", f"timeout is {shown(text)}; expected seconds, more than 0", details
        )
    return seconds


_FLOAT_TEXT = 8
"""Bytes of a float in JSON, with its comma: few tensors of a network have less. Zeros take 4, others up to 24."""
_LEAST_TEXT = 2
"""Bytes of any other number, with its comma, at least."""


def planned_size(
    graph: RuntimeGraph, inputs: Mapping[str, Array], capture: Collection[str]
) -> tuple[int, int]:
    """Return how large the operands will be that a run is to capture.

    Args:
        graph: the graph.
        inputs: operand name -> array.
        capture: names of operands.

    Returns:
        Of those whose shapes are known before the run: their bytes, and about their bytes as JSON; no tensor that is
        known from networks has much less. 0 where the graph does not run on such inputs, which the run will show.
    """
    given = [TensorSpec(inputs[port.operand].shape, inputs[port.operand].dtype) for port in graph.inputs]
    try:
        plan = graph.plan(given)
    except KuiperError:
        return 0, 0
    specs = [spec for name in capture if name in plan.specs for spec in _tensors(plan.specs[name])]
    return sum(spec.nbytes for spec in specs), sum(map(_text_bytes, specs))


def array_bytes(values: Iterable[Value]) -> int:
    """Return the bytes of the arrays among values, and in tuples and lists among them."""
    size = 0
    for value in values:
        if isinstance(value, np.ndarray):
            size += value.nbytes
        elif isinstance(value, tuple | list):
            size += array_bytes(value)
    return size


def _tensors(spec: object) -> list[TensorSpec]:
    """Return the tensors that an operand carries: itself, or those of a tuple or list."""
    if isinstance(spec, TensorSpec):
        return [spec]
    return [tensor for item in spec for tensor in _tensors(item)] if isinstance(spec, tuple | list) else []


def _text_bytes(spec: TensorSpec) -> int:
    """Return about how many bytes a tensor has as JSON."""
    floats = {"f": 1, "c": 2}.get(spec.dtype.kind, 0)
    return spec.size * (floats * _FLOAT_TEXT if floats else _LEAST_TEXT)
