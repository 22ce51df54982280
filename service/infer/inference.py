"""What `POST /infer` asks of a model, from its head and bytes to bytes."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import QueryParams

from engine import RuntimeGraph, TraceLevel
from service.codec import (
    Decoded,
    Options,
    Timing,
    build_answer,
    decode,
    encode,
    negotiate,
    parse_options,
)
from service.config.limits import Limits
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Call, Outcome, Surface
from service.scheduling.intake import Answer, Header
from service.tasks import predict

DEFAULTS = Options(trace=TraceLevel.ON, capture=())
"""Options of a request that sets none."""


@dataclass(slots=True)
class Inference:
    """A request to run a model, and the codec between it and the run, which is for a worker thread.

    Attributes:
        model: the model.
        request_id: id of the request.
        body: the request's whole body; dropped when it is decoded.
        content_type: its `Content-Type` header.
        options: what the query asks for; completed by what the body asks for when it is decoded.
        media_type: media type of the answer.
        limits: how much the request may ask for.
        received_ns: `perf_counter_ns` of the moment when the body was complete.
    """

    model: LoadedModel
    request_id: str
    body: bytes
    content_type: str | None
    options: Options
    media_type: str
    limits: Limits
    received_ns: int

    def decode(self) -> Decoded:
        """Return the inputs, and all options that are in force.

        Raises:
            ServiceError: the body or its options are not what the model can take.
        """
        graph = self.model.graph
        decoded = decode(self.body, self.content_type, graph.inputs, self.model.config, self.limits)
        self.body = b""
        self.options = DEFAULTS.overridden_by(decoded.options).overridden_by(self.options)
        check_capture(graph, self.options.capture or ())
        return Decoded(decoded.inputs, self.options)

    def encode(self, outcome: Outcome) -> Answer:
        """Return the answer."""
        ports, result, stamps = self.model.graph.outputs, outcome.result, outcome.stamps
        predictions = predict(self.model.config, ports, result.outputs, self.options.top_k)
        timing = Timing(
            decode_ms=(stamps.decode_end - stamps.decode_start) / 1e6,
            queue_ms=stamps.queue_ns / 1e6,
            forward_ms=(stamps.forward_end - stamps.forward_start) / 1e6,
            is_observed=outcome.is_observed,
        )
        answer = build_answer(
            self.model.name, self.model.version, self.request_id, ports, result, predictions, timing
        )
        return Answer((encode(answer, self.media_type, self.received_ns),), self.media_type)


@dataclass(frozen=True, slots=True)
class InferIntake:
    """A request whose body has not come yet.

    Attributes:
        model: the model that it asks for.
        request_id: its id.
        content_type: its `Content-Type` header.
        options: what the query asks for.
        media_type: media type of the answer.
        limits: how much it may ask for.
        surface: always INFER.
        lead: always 0.
    """

    model: LoadedModel
    request_id: str
    content_type: str | None
    options: Options
    media_type: str
    limits: Limits
    surface: Surface = Surface.INFER
    lead: int = 0

    def call(self, body: bytes | bytearray, received_ns: int) -> Call[Answer]:
        """Return the call. Raises nothing."""
        inference = Inference(
            model=self.model,
            request_id=self.request_id,
            body=bytes(body),
            content_type=self.content_type,
            options=self.options,
            media_type=self.media_type,
            limits=self.limits,
            received_ns=received_ns,
        )
        return Call(
            model=self.model,
            surface=self.surface,
            request_id=self.request_id,
            decode=inference.decode,
            encode=inference.encode,
            received_ns=received_ns,
        )


def open_inference(
    model: LoadedModel, request_id: str, query: QueryParams, header: Header, limits: Limits
) -> InferIntake:
    """Return what the head of a request asks for.

    Args:
        model: the model that it asks for.
        request_id: its id.
        query: its query.
        header: its headers; those that came several times in one.
        limits: how much it may ask for.

    Raises:
        ServiceError: 422 `invalid_parameter`, 406 `not_acceptable`.
    """
    return InferIntake(
        model=model,
        request_id=request_id,
        content_type=header("content-type"),
        options=_parse_query(query),
        media_type=negotiate(header("accept")),
        limits=limits,
    )


def check_capture(graph: RuntimeGraph, capture: Collection[str]) -> None:
    """Check that every operand to capture is in the graph.

    Raises:
        ServiceError: 422 `unknown_operand`.
    """
    for name in capture:
        if name not in graph.operands:
            nearest = difflib.get_close_matches(name, graph.operands, n=3, cutoff=0.3)
            message = f"capture: the graph has no operand {name[:80]!r}; GET /graph lists them all"
            raise ServiceError(422, "unknown_operand", message, {"operand": name[:80], "nearest": nearest})


def _parse_query(query: QueryParams) -> Options:
    values = {name: value for name, value in query.items() if name not in ("model", "version")}
    if "capture" in values:
        values["capture"] = ",".join(query.getlist("capture"))
    return parse_options(values)
