import sys
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from fastapi import FastAPI, Response
from httpx import ASGITransport, AsyncClient
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler
from opentelemetry.trace import SpanKind, StatusCode

from engine import RunTrace
from service.config.setting_file import SettingsError
from service.config.settings import Settings
from service.http.paths import POLLED_PATHS
from service.scheduling.job import CallStatus, Job
from service.telemetry.spans import MAX_LAYER_SPANS, OpenTelemetrySpans, make_spans
from service.telemetry.telemetry import Telemetry
from tests.service.telemetry.jobs import TIMESTAMPS, make_job, make_layer, make_trace

pytestmark = pytest.mark.anyio

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Tracing:
    """Spans that end up in memory, and an application that answers a request by observing a call."""

    def __init__(self, layers: bool = False, sampler: Sampler = ALWAYS_ON) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = OpenTelemetrySpans(provider, layers)
        self.record: Job[Any] | None = None
        self.status = 200

    @property
    def app(self) -> FastAPI:
        app = FastAPI(telemetry=self.spans.of_requests(POLLED_PATHS))

        @app.get("/models/{name}")
        async def show() -> Response:
            if self.record is not None:
                self.spans.observe(self.record)
            return Response(status_code=self.status)

        @app.get("/fault")
        async def fail() -> None:
            raise ZeroDivisionError("x")

        return app

    async def get(self, path: str = "/models/digits", method: str = "GET", **headers: str) -> None:
        async with AsyncClient(transport=ASGITransport(self.app), base_url="http://test") as client:
            await client.request(method, path, headers=headers)

    @property
    def finished(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def length_ms(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e6


async def test_call_is_drawn_into_the_span_of_its_request() -> None:
    tracing = Tracing()
    tracing.record = make_job(trace=make_trace(), batch_size=3)
    await tracing.get()
    spans = tracing.finished
    request = spans.pop("GET /models/{name}")
    parts = ["queue", "decode", "wait for batch", "forward", "encode"]
    assert list(spans) == parts
    assert [length_ms(spans[name]) for name in parts] == pytest.approx([3, 2, 1, 10, 3])
    assert {parent_of(span) for span in spans.values()} == {request.context.span_id}
    assert request.kind is SpanKind.SERVER
    assert request.attributes is not None
    assert (
        dict(request.attributes).items()
        >= {
            "http.request.method": "GET",
            "url.scheme": "http",
            "http.route": "/models/{name}",
            "http.response.status_code": 200,
            "kuiper.model": "digits",
            "kuiper.version": "1",
            "kuiper.request_id": "r1",
            "kuiper.ending": "SUCCESS",
            "kuiper.items": 1,
        }.items()
    )
    assert spans["forward"].attributes == {"kuiper.batch_size": 3, "thread.name": "worker-0"}


async def test_observed_runs_are_marked() -> None:
    tracing = Tracing()
    tracing.record = make_job(is_observed=True)
    await tracing.get()
    attributes = tracing.finished["forward"].attributes
    assert attributes is not None
    assert attributes["kuiper.observed"] is True


async def test_parts_follow_each_other() -> None:
    tracing = Tracing()
    tracing.record = make_job()
    await tracing.get()
    starts = [
        tracing.finished[name].start_time
        for name in ("queue", "decode", "wait for batch", "forward", "encode")
    ]
    assert starts == sorted(starts, key=lambda start: start or 0)


async def test_traceparent_of_the_client_is_honoured() -> None:
    tracing = Tracing()
    await tracing.get(traceparent=f"00-{TRACE_ID}-{PARENT_ID}-01")
    (request,) = tracing.finished.values()
    assert request.context.trace_id == int(TRACE_ID, 16)
    assert parent_of(request) == int(PARENT_ID, 16)


@pytest.mark.parametrize("header", ["00-0-0-01", "nonsense", f"00-{'0' * 32}-{PARENT_ID}-01"])
async def test_traceparent_that_is_none_begins_a_trace(header: str) -> None:
    tracing = Tracing()
    await tracing.get(traceparent=header)
    (request,) = tracing.finished.values()
    assert request.parent is None


@pytest.mark.parametrize(("flag", "count"), [("00", 0), ("01", 6)])
async def test_sampling_of_the_client_decides(flag: str, count: int) -> None:
    tracing = Tracing(sampler=ParentBased(ALWAYS_OFF))
    tracing.record = make_job()
    await tracing.get(traceparent=f"00-{TRACE_ID}-{PARENT_ID}-{flag}")
    assert len(tracing.finished) == count


def test_call_outside_of_a_request_is_not_drawn() -> None:
    tracing = Tracing()
    tracing.spans.observe(make_job())
    assert tracing.finished == {}


async def test_layers_are_spans_only_where_they_are_asked_for() -> None:
    for layers, count in ((False, 0), (True, 3)):
        tracing = Tracing(layers)
        tracing.record = make_job(trace=make_trace(TIMESTAMPS.forward_start))
        await tracing.get()
        forward = tracing.finished["forward"]
        inner = [span for span in tracing.exporter.get_finished_spans() if span.name.startswith("nn.")]
        assert len(inner) == count
        for span in inner:
            assert parent_of(span) == forward.context.span_id
            assert span.attributes is not None
            assert span.attributes["kuiper.layer.outputs"] == "[1, 4]"
        assert [length_ms(span) for span in inner] == pytest.approx([4.0, 0.02, 5.0][:count])


async def test_of_very_many_layers_the_longest_are_spans() -> None:
    count = MAX_LAYER_SPANS + 5
    tracing = Tracing(layers=True)
    layers = tuple(make_layer(index, "nn.ReLU", index * 100.0, float(index)) for index in range(count))
    tracing.record = make_job(trace=RunTrace(count * 100.0, layers))
    await tracing.get()
    inner = [span for span in tracing.exporter.get_finished_spans() if span.name == "nn.ReLU"]
    assert len(inner) == MAX_LAYER_SPANS
    assert min(length_ms(span) for span in inner) == pytest.approx(0.005)


async def test_failed_call_shows_why() -> None:
    tracing = Tracing()
    tracing.status = 503
    timestamps = replace(
        TIMESTAMPS, decode_start=0, decode_end=0, forward_start=0, forward_end=0, encode_end=0
    )
    tracing.record = make_job(CallStatus.REJECTED, timestamps=timestamps, message="the queue is full")
    await tracing.get()
    (request,) = tracing.finished.values()
    assert request.status.status_code is StatusCode.ERROR
    assert request.attributes is not None
    assert request.attributes["kuiper.error"] == "the queue is full"
    assert request.attributes["error.type"] == "503"


async def test_health_and_metrics_have_no_spans() -> None:
    tracing = Tracing()
    for path in ("/livez", "/readyz", "/metrics"):
        await tracing.get(path)
    assert tracing.finished == {}


async def test_unknown_methods_have_one_name() -> None:
    tracing = Tracing()
    await tracing.get("/", method="BREW")
    (request,) = tracing.finished.values()
    assert request.attributes is not None
    assert request.attributes["http.request.method"] == "_OTHER"
    assert "BREW" not in request.name


async def test_fault_ends_the_span() -> None:
    tracing = Tracing()
    with pytest.raises(ZeroDivisionError):
        await tracing.get("/fault")
    (request,) = tracing.finished.values()
    assert request.status.status_code is StatusCode.ERROR


@pytest.fixture
def without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "service.telemetry.spans")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # as if it were not installed


@pytest.mark.usefixtures("without_opentelemetry")
def test_asking_for_spans_without_the_extra_is_an_error_that_says_so() -> None:
    with pytest.raises(SettingsError, match=r"otel: needs an extra .*: pip install -e \'\.\[otel\]\'"):
        Telemetry(Settings(otel="on"))
    assert Telemetry(Settings()).spans is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "jaeger"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_exporters_that_are_not_there_are_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable}: '{value}'"):
        make_spans(layers=False, environment={variable: value})


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "kuiper-serve"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=ours,a=b"}, "ours"),
    ],
)
def test_service_is_called_as_the_environment_says(
    variables: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    spans = make_spans(layers=False, environment={"OTEL_TRACES_EXPORTER": "none"})
    assert spans._provider.resource.attributes["service.name"] == name
    spans.close()


def test_disabled_sdk_exports_nothing() -> None:
    spans = make_spans(layers=False, environment={"OTEL_SDK_DISABLED": "true"})
    assert not spans._provider._active_span_processor._span_processors


def test_collector_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            assert cancelled.wait(60)
            return SpanExportResult.FAILURE

        def shutdown(self) -> None:
            cancelled.set()

    monkeypatch.setattr("service.telemetry.spans.CLOSE_SECONDS", 0.01)
    exporter = Hanging()
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    spans = OpenTelemetrySpans(provider, layers=False, exporter=exporter)
    spans._tracer.start_span("last").end()
    spans.close()
    assert cancelled.is_set()
