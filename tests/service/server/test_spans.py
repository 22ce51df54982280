"""Spans of a real server, sent to a real collector; and what a server does that sends none."""

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from tests.service.server.process import ROOT, SOON, ServerProcess, run_to_end

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
VECTOR = {"inputs": [{"data": [[1.0, -2.0, 3.0]]}]}


class Collector:
    """Takes spans by OTLP over HTTP."""

    def __init__(self) -> None:
        self.received: Queue[ResourceSpans] = Queue()
        self.headers: list[str | None] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/v1/traces"
                collector.headers.append(self.headers["X-Tenant"])
                for spans in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.received.put(spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    running = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=us")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "tested")
    yield running
    running.close()


def infer(url: str) -> None:
    response = httpx.post(
        f"{url}/infer?model=vector",
        json=VECTOR,
        headers={"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"},
        timeout=SOON,
    )
    assert response.status_code == 200


def test_spans_of_a_request_reach_the_collector(models: Path, collector: Collector) -> None:
    with ServerProcess("--models", str(models), "--otel", "layers", module="service.cli") as server:
        infer(server.url)
        server.terminate()
        assert server.exit_code() == 0  # what is left is sent before the end
    sent = collector.received.get(timeout=SOON)
    resource = {item.key: item.value.string_value for item in sent.resource.attributes}
    assert resource["service.name"] == "tested"
    assert collector.headers[0] == "us"
    spans = {span.name: span for scope in sent.scope_spans for span in scope.spans}
    request, forward = spans["POST /infer"], spans["forward"]
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE_ID}
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert forward.parent_span_id == request.span_id
    assert spans["nn.ReLU"].parent_span_id == forward.span_id
    assert request.start_time_unix_nano <= spans["queue"].start_time_unix_nano
    assert forward.start_time_unix_nano <= spans["nn.ReLU"].start_time_unix_nano
    assert spans["nn.ReLU"].end_time_unix_nano <= forward.end_time_unix_nano
    assert forward.end_time_unix_nano <= request.end_time_unix_nano


def test_sampler_is_set_by_the_environment(
    models: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with ServerProcess("--models", str(models), "--otel", "on", module="service.cli") as server:
        infer(server.url)
        server.terminate()
        assert server.exit_code() == 0
    assert collector.received.empty()


def test_exporter_that_is_not_there_ends_the_start(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    ended = run_to_end("--models", str(models), "--otel", "on")
    assert ended.returncode == 2
    assert ended.stderr == "kuiper: OTEL_TRACES_EXPORTER: 'zipkin' is none of otlp, console and none\n"


def test_server_without_spans_does_not_even_import_opentelemetry() -> None:
    code = (
        "import sys; from service.app import create_app; from service.config.settings import Settings; "
        "create_app(Settings()); "
        "print({'service.telemetry.spans', 'opentelemetry.sdk', 'opentelemetry.exporter'} & sys.modules.keys())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=SOON, check=True
    )
    assert ended.stdout == "set()\n"  # FastAPI itself imports the API where that is installed
