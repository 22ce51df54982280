"""One request to `POST /infer` and its answer: decodes the body to the inputs of a graph, encodes the run."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from engine import RuntimeGraph, TraceLevel
from service.codec import (
    JSON_TYPE,
    Decoded,
    Options,
    Timing,
    build_answer,
    decode,
    encode,
)
from service.config.limits import Limits
from service.errors import ServiceError
from service.heavy_work import LIGHT_ANSWER_BYTES, check_weight
from service.infer.answer_size import array_bytes, planned_bytes
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import RunOutcome
from service.tasks import predict, remark

DEFAULTS = Options(trace=TraceLevel.ON, capture=())
"""Options of a request that sets none."""


@dataclass(slots=True)
class InferExchange:
    """A request to run a model, and its answer. A worker calls `decode`, then `encode`, each until it is done once.

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
            ServiceError: the body or its options are not what the model can take, or ask for too large an answer.
            HeavyWorkError: this thread leaves such work to others, which is to call it again.
        """
        graph = self.model.graph
        decoded = decode(self.body, self.content_type, graph.inputs, self.model.config, self.limits)
        self.options = DEFAULTS.overridden_by(decoded.options).overridden_by(self.options)
        if self.options.capture:
            check_capture(graph, self.options.capture)
            size = planned_bytes(graph, decoded.inputs, self.options.capture)
            self.limits.check_answer(size)
            check_weight(size, LIGHT_ANSWER_BYTES)
        self.body = b""
        return Decoded(decoded.inputs, self.options)

    def encode(self, outcome: RunOutcome) -> Answer:
        """Return the answer.

        Raises:
            ServiceError: 413 `answer_too_large`; 422 `no_classes`.
            HeavyWorkError: this thread leaves such work to others.
        """
        ports, result, timestamps = self.model.graph.outputs, outcome.result, outcome.timestamps
        size = array_bytes([*result.outputs, *result.captured.values()])
        self.limits.check_answer(size)
        if self.media_type == JSON_TYPE:
            check_weight(size, LIGHT_ANSWER_BYTES)
        predictions = predict(self.model.config, ports, result.outputs, self.options.top_k)
        timing = Timing(
            decode_ms=(timestamps.decode_end - timestamps.decode_start) / 1e6,
            queue_ms=timestamps.queue_ns / 1e6,
            forward_ms=(timestamps.forward_end - timestamps.forward_start) / 1e6,
            is_observed=outcome.is_observed,
        )
        warning = remark(self.model.config, predictions)
        answer = build_answer(
            self.model.name, self.model.version, self.request_id, ports, result, predictions, timing, warning
        )
        return Answer(encode(answer, self.media_type, self.received_ns, limits=self.limits), self.media_type)


def check_capture(graph: RuntimeGraph, capture: Collection[str]) -> None:
    """Check that every operand to capture is in the graph.

    Raises:
        ServiceError: 422 `unknown_operand`.
    """
    for name in capture:
        if name not in graph.operands:
            nearest = difflib.get_close_matches(name[:80], graph.operands, n=3, cutoff=0.3)
            message = f"capture: the graph has no operand {name[:80]!r}; GET /graph lists them all"
            raise ServiceError(422, "unknown_operand", message, {"operand": name[:80], "nearest": nearest})
