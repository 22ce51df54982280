"""One inference, bytes to bytes. Runs in a worker thread."""

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter_ns

from engine import RuntimeGraph, TraceLevel
from service.codec import Limits, Options, Timing, build_answer, decode, encode
from service.errors import ServiceError
from service.job import Job
from service.loaded_model import LoadedModel
from service.tasks import predict

DEFAULTS = Options(trace=TraceLevel.ON, capture=())
"""Options of a request that sets none."""


@dataclass(frozen=True, slots=True)
class Inference:
    """A request to run a model.

    Attributes:
        model: the model.
        request_id: id of the request.
        body: the request's whole body.
        content_type: its `Content-Type` header.
        options: what the query asks for.
        media_type: media type of the answer.
        received_ns: `perf_counter_ns` of the moment when the body was complete.
    """

    model: LoadedModel
    request_id: str
    body: bytes
    content_type: str | None
    options: Options
    media_type: str
    received_ns: int


def infer(request: Inference, limits: Limits, job: Job[bytes]) -> bytes:
    """Decode a request, run its model and encode the answer.

    Raises:
        ServiceError: the request cannot be answered as asked.
        InputError, LayerError: its arrays do not run.
        RunStoppedError: the job was given up.
    """
    graph = request.model.graph
    started = perf_counter_ns()
    decoded = decode(request.body, request.content_type, graph.inputs, request.model.config, limits)
    options = DEFAULTS.overridden_by(decoded.options).overridden_by(request.options)
    capture = options.capture or ()
    check_capture(graph, capture)
    ready = perf_counter_ns()
    result = graph.run(
        decoded.inputs, trace=options.trace or TraceLevel.OFF, capture=capture, stop=job.stop_reason
    )
    ended = perf_counter_ns()
    predictions = predict(request.model.config, graph.outputs, result.outputs, options.top_k)
    timing = Timing(
        decode_ms=(ready - started) / 1e6,
        queue_ms=(job.started - job.queued) * 1e3,
        forward_ms=(ended - ready) / 1e6,
    )
    name = request.model.name
    answer = build_answer(name, request.request_id, graph.outputs, result, predictions, timing)
    return encode(answer, request.media_type, request.received_ns)


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
