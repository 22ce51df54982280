"""OpenTelemetry: spans for the stages of each call, inside the span of its request.

Needs the extra `[otel]`; imported only where the setting `otel` asks for it. OpenTelemetry's own environment variables
set where spans are sent, which requests are sampled, and the name of the service.
"""

import os
from collections.abc import Mapping, Set
from heapq import nlargest
from threading import Timer
from typing import Any

from fastapi.telemetry import TelemetryConfig
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, get_current_span, set_span_in_context

from engine import LayerTrace, RunTrace
from service.config.setting_file import SettingsError
from service.scheduling.job import CallStatus, Job
from service.telemetry.recent_runs import epoch_offset_ns
from service.version import kuiper_version

MAX_LAYER_SPANS = 512
"""Maximum layers of one run that get spans, the slowest ones: an exporter's queue holds 2,048 spans by default."""
CLOSE_SECONDS = 3.0
"""Seconds that a collector has to take the last spans when the server ends."""
SERVICE_NAME = "kuiper-serve"

_FAULTS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})
"""Status codes that are the server's fault rather than the client's, after the same conventions."""
_PROTOCOL = "http/protobuf"


class OpenTelemetrySpans:
    """An observer that adds spans for the stages of a call to the span of its request.

    Args:
        provider: makes the spans.
        layers: whether the layers of traced runs get spans, too.
        exporter: sends the provider's spans; None where they are sent nowhere, or by a processor of the provider's own.
    """

    def __init__(self, provider: TracerProvider, layers: bool, exporter: SpanExporter | None = None) -> None:
        self._provider = provider
        self._exporter = exporter
        self._layers = layers
        self._tracer = provider.get_tracer("kuiper", kuiper_version())

    def observe(self, job: Job[Any]) -> None:
        """Add the spans of a call, if its request is sampled."""
        request = get_current_span()  # observers are called in the context of the call's request
        if not request.is_recording():
            return
        attributes: dict[str, str | int] = {
            "kuiper.model": job.model.name,
            "kuiper.version": job.model.version,
            "kuiper.request_id": job.request_id,
            "kuiper.ending": job.status.value,
            "kuiper.items": job.rows,
        }
        if job.status is not CallStatus.SUCCESS and job.message is not None:
            attributes["kuiper.error"] = job.message
        request.set_attributes(attributes)
        timestamps = job.timestamps
        self._add("queue", request, timestamps.queued, timestamps.decode_start)
        self._add("decode", request, timestamps.decode_start, timestamps.decode_end)
        self._add("wait for batch", request, timestamps.decode_end, timestamps.forward_start)
        attributes = {"kuiper.batch_size": job.batch_size, "thread.name": job.worker}
        if job.is_observed:
            attributes["kuiper.observed"] = True
        forward = self._add("forward", request, timestamps.forward_start, timestamps.forward_end, attributes)
        self._add("encode", request, timestamps.forward_end, timestamps.encode_end)
        if self._layers and forward is not None and job.trace is not None:
            self._add_layers(job.trace, forward, timestamps.forward_start)

    def of_requests(self, ignored_paths: Set[str]) -> TelemetryConfig:
        """Return how FastAPI gives every HTTP request a span, except for requests to the ignored paths."""
        return {
            "tracer_provider": self._provider,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "exclude": lambda scope: scope.get("path") in ignored_paths,
        }

    def begin_call(self, method: str, headers: Mapping[bytes, bytes] | None) -> "CallSpan":
        """Begin the span of a call by gRPC, or of one request of a stream; see `CallSpan`."""
        return CallSpan(self._tracer, method, headers)

    def close(self) -> None:
        """Send the spans that are left, as long as the collector takes them."""
        if self._exporter is None:
            self._provider.shutdown()
            return
        time_limit = Timer(CLOSE_SECONDS, self._exporter.shutdown)  # ends the retries
        time_limit.start()
        self._provider.shutdown()
        time_limit.cancel()

    def _add(
        self, name: str, parent: Span, start: int, end: int, attributes: Mapping[str, str | int] | None = None
    ) -> Span | None:
        """Add the span of a stage between readings of `perf_counter_ns`; None where the call did not complete it."""
        if not start or not end:
            return None
        offset = epoch_offset_ns()
        span = self._tracer.start_span(
            name, set_span_in_context(parent), start_time=start + offset, attributes=attributes
        )
        span.end(end + offset)
        return span

    def _add_layers(self, trace: RunTrace, forward: Span, forward_start: int) -> None:
        begun = trace.start_ns or forward_start
        layers = trace.layers
        if len(layers) > MAX_LAYER_SPANS:
            layers = tuple(nlargest(MAX_LAYER_SPANS, layers, key=lambda layer: layer.duration_us))
        for layer in layers:
            start = begun + round(layer.start_us * 1000)
            end = start + round(layer.duration_us * 1000)
            self._add(layer.type, forward, start, end, _describe_layer(layer))


class CallSpan:
    """The span of a call by gRPC: the current one from when it is made until it ends; both in one task.

    Args:
        tracer: makes the span.
        method: service and method, which are the server's own.
        headers: the metadata of the call, where `traceparent` may name the client's span; None for a request of a
            stream, whose parent is the span of the stream.
    """

    def __init__(self, tracer: Tracer, method: str, headers: Mapping[bytes, bytes] | None) -> None:
        parent, kind = None, SpanKind.INTERNAL
        if headers is not None:
            carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
            parent, kind = extract(carrier), SpanKind.SERVER
        attributes = {"rpc.system.name": "grpc", "rpc.method": method}
        self._span = tracer.start_span(
            method if headers is not None else f"{method} request", parent, kind=kind, attributes=attributes
        )
        self._token = attach(set_span_in_context(self._span))

    def end(self, status: str) -> None:
        """End the span.

        Args:
            status: name of the status code of the call.
        """
        detach(self._token)
        if self._span.is_recording():
            self._span.set_attribute("rpc.response.status_code", status)
            if status != "OK":
                self._span.set_attribute("error.type", status)
            if status in _FAULTS:
                self._span.set_status(StatusCode.ERROR)
        self._span.end()


def make_spans(layers: bool, environment: Mapping[str, str] = os.environ) -> OpenTelemetrySpans:
    """Return an observer whose spans are sent where OpenTelemetry's environment variables say.

    OpenTelemetry itself reads the sampler, the exporter's address, headers and timeouts, and the sizes of batches.

    Args:
        layers: whether the layers of traced runs get spans, too.
        environment: the environment variables.

    Raises:
        SettingsError: they ask for an exporter or a protocol that is not supported.
    """
    own = Resource({"service.name": SERVICE_NAME, "service.version": kuiper_version()})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    exporter = _exporter(environment)
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return OpenTelemetrySpans(provider, layers, exporter)


def _exporter(environment: Mapping[str, str]) -> SpanExporter | None:
    kind = environment.get("OTEL_TRACES_EXPORTER") or "otlp"
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or kind == "none":
        return None
    if kind == "console":
        return ConsoleSpanExporter()
    if kind != "otlp":
        raise SettingsError(f"OTEL_TRACES_EXPORTER: {kind!r} is none of otlp, console and none")
    for variable in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if (protocol := environment.get(variable) or _PROTOCOL) != _PROTOCOL:
            raise SettingsError(
                f"{variable}: {protocol!r} is not {_PROTOCOL}, the only protocol that is supported"
            )
    return OTLPSpanExporter()


def _describe_layer(layer: LayerTrace) -> dict[str, str | int]:
    return {
        "kuiper.layer.name": layer.name,
        "kuiper.layer.index": layer.index,
        "kuiper.layer.outputs": ", ".join(str(list(operand.shape or ())) for operand in layer.outputs),
        "kuiper.layer.multiply_adds": layer.multiply_adds,
        "kuiper.layer.bytes": layer.bytes_moved,
        "kuiper.layer.backend": layer.backend,
        "kuiper.layer.fused": ", ".join(layer.fused),
        "kuiper.layer.precision": layer.precision,
    }
