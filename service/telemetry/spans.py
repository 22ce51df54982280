"""OpenTelemetry: a span for each request, and in it what it waited for and what was done.

Needs the extra `[otel]`; imported only where the setting `otel` asks for it. Where spans go, which requests are sampled
and what the service is called is all set by OpenTelemetry's own environment variables.
"""

import os
from collections.abc import Mapping, Set
from heapq import nlargest
from threading import Timer

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import (
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
    use_span,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import LayerTrace, RunTrace
from service.config.settings import SettingsError
from service.scheduling.call import CallRecord, Ending
from service.telemetry.clock import epoch_offset_ns
from service.telemetry.http_requests import KNOWN_METHODS, OTHER_METHOD
from service.version import kuiper_version

MAX_LAYER_SPANS = 512
"""Most spans for the layers of one run, the longest ones: an exporter's queue holds 2,048 by default."""
CLOSE_SECONDS = 3.0
"""Seconds until a collector that does not answer is given up at the end."""
SERVICE_NAME = "kuiper-serve"

_PROTOCOL = "http/protobuf"
_Attributes = Mapping[str, str | int | float]


class Spans:
    """An observer that draws the parts of a call into the span of its request.

    Args:
        provider: what spans are made by, and ends their export.
        layers: whether the layers of traced runs have spans of their own.
        exporter: what the provider sends them by.
    """

    def __init__(self, provider: TracerProvider, layers: bool, exporter: SpanExporter | None = None) -> None:
        self._provider = provider
        self._exporter = exporter
        self._layers = layers
        self._tracer = provider.get_tracer("kuiper", kuiper_version())

    def observe(self, record: CallRecord) -> None:
        """Draw a call, if its request is sampled."""
        request = get_current_span()  # observers are told in the context of the call's request
        if not request.is_recording():
            return
        request.set_attributes(_describe(record))
        stamps = record.stamps
        self._draw("queue", request, stamps.queued, stamps.decode_start)
        self._draw("decode", request, stamps.decode_start, stamps.decode_end)
        self._draw("wait for batch", request, stamps.decode_end, stamps.forward_start)
        attributes: dict[str, str | int | float] = {
            "kuiper.batch_size": record.batch_size,
            "thread.name": record.worker,
        }
        if record.is_observed:
            attributes["kuiper.observed"] = True
        forward = self._draw("forward", request, stamps.forward_start, stamps.forward_end, attributes)
        self._draw("encode", request, stamps.forward_end, stamps.encode_end)
        if self._layers and forward is not None and record.trace is not None:
            self._draw_layers(record.trace, forward, stamps.forward_start)

    def around(self, app: ASGIApp, ignored_paths: Set[str]) -> "SpanMiddleware":
        """Return a middleware that gives every request its span, but for those to some paths."""
        return SpanMiddleware(app, self._tracer, ignored_paths)

    def close(self) -> None:
        """Send what is left, as far as the collector takes it."""
        if self._exporter is None:
            self._provider.shutdown()
            return
        impatience = Timer(CLOSE_SECONDS, self._exporter.shutdown)  # ends its retries
        impatience.start()
        self._provider.shutdown()
        impatience.cancel()

    def _draw(
        self, name: str, parent: Span, start: int, end: int, attributes: _Attributes | None = None
    ) -> Span | None:
        """Draw a part between two readings of `perf_counter_ns`; None where the call never came to its end."""
        if not start or not end:
            return None
        offset = epoch_offset_ns()
        span = self._tracer.start_span(
            name, set_span_in_context(parent), start_time=start + offset, attributes=attributes
        )
        span.end(end + offset)
        return span

    def _draw_layers(self, trace: RunTrace, forward: Span, forward_start: int) -> None:
        begun = trace.start_ns or forward_start
        layers = trace.layers
        if len(layers) > MAX_LAYER_SPANS:
            layers = tuple(nlargest(MAX_LAYER_SPANS, layers, key=lambda layer: layer.duration_us))
        for layer in layers:
            start = begun + round(layer.start_us * 1000)
            end = start + round(layer.duration_us * 1000)
            self._draw(layer.type, forward, start, end, _describe_layer(layer))


class SpanMiddleware:
    """Gives every request its span, as a child of the client's where it names one (`traceparent`)."""

    def __init__(self, app: ASGIApp, tracer: Tracer, ignored_paths: Set[str]) -> None:
        self._app = app
        self._tracer = tracer
        self._ignored_paths = ignored_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http" or scope["path"] in self._ignored_paths:
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in KNOWN_METHODS else OTHER_METHOD
        span = self._tracer.start_span(
            method if method in KNOWN_METHODS else "HTTP",
            extract(_headers(scope)),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "url.scheme": scope["scheme"]},
        )

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                _note_status(span, message["status"])
            await send(message)

        with use_span(span, end_on_exit=True, record_exception=False):
            try:
                await self._app(scope, receive, send_on if span.is_recording() else send)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if route is not None and span.is_recording():
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)


def make_spans(layers: bool, environment: Mapping[str, str] = os.environ) -> Spans:
    """Return spans that go where OpenTelemetry's environment variables say.

    OpenTelemetry itself reads the sampler, the exporter's address, headers and timeouts, and the sizes of batches.

    Args:
        layers: whether the layers of traced runs have spans of their own.
        environment: the environment variables.

    Raises:
        SettingsError: they ask for an exporter that is not there.
    """
    own = Resource({"service.name": SERVICE_NAME, "service.version": kuiper_version()})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    exporter = _exporter(environment)
    if exporter is not None:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return Spans(provider, layers, exporter)


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
                f"{variable}: {protocol!r} is not {_PROTOCOL}, which is all that is spoken here"
            )
    return OTLPSpanExporter()


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by name; of those that propagate a trace, the last counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _note_status(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_attribute("error.type", str(status))
        span.set_status(StatusCode.ERROR)


def _describe(record: CallRecord) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        "kuiper.model": record.model,
        "kuiper.version": record.version,
        "kuiper.request_id": record.request_id,
        "kuiper.ending": record.ending.value,
        "kuiper.items": record.items,
    }
    if record.ending is not Ending.SUCCESS and record.error is not None:
        attributes["kuiper.error"] = record.error
    return attributes


def _describe_layer(layer: LayerTrace) -> dict[str, str | int]:
    return {
        "kuiper.layer.name": layer.name,
        "kuiper.layer.index": layer.index,
        "kuiper.layer.outputs": ", ".join(str(list(operand.shape or ())) for operand in layer.outputs),
        "kuiper.layer.multiply_adds": layer.multiply_adds,
        "kuiper.layer.bytes": layer.bytes_moved,
        "kuiper.layer.backend": layer.backend,
        "kuiper.layer.fused": ", ".join(layer.fused),
    }
