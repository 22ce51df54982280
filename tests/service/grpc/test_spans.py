"""Spans of calls, sent to a real collector."""

from pathlib import Path

import grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tritonclient.grpc import service_pb2

from tests.service.grpc.servers import INFER, RawClient, grpc_address
from tests.service.grpc.test_streaming import STREAM, Sender
from tests.service.processes.calls import message
from tests.service.server.process import SOON, ServerProcess
from tests.service.server.test_spans import TRACE_ID, Collector, collector

__all__ = ["collector"]
PARENT = "b7ad6b7169203331"
METADATA = (("traceparent", f"00-{TRACE_ID}-{PARENT}-01"),)


def attributes(span: Span) -> dict[str, str]:
    return {item.key: item.value.string_value for item in span.attributes}


def test_spans_of_calls_reach_the_collector(models: Path, collector: Collector) -> None:
    flags = ("--models", str(models), "--otel", "on", "--grpc-port", "0")
    unknown = service_pb2.ModelMetadataRequest(name="nothing").SerializeToString()
    with ServerProcess(*flags, module="service.cli") as server:
        with grpc.insecure_channel(grpc_address(server)) as channel:
            client = RawClient(channel)
            client.call(message(), metadata=METADATA)
            client.call(b"", "ServerLive", metadata=METADATA)
            assert client.refusal(unknown, "ModelMetadata")[0] == "NOT_FOUND"
            sender = Sender()
            stream = channel.stream_stream(STREAM)(iter(sender), timeout=SOON, metadata=METADATA)
            for _ in range(2):
                sender.send(message())
                next(stream)
            sender.send(None)
            assert list(stream) == []
        server.terminate()
        assert server.exit_code() == 0
    sent = collector.received.get(timeout=SOON)
    spans = [span for scope in sent.scope_spans for span in scope.spans]
    (infer,) = [span for span in spans if span.name == INFER[1:]]
    (refused,) = [span for span in spans if span.name.endswith("/ModelMetadata")]
    (whole,) = [span for span in spans if span.name == STREAM[1:]]
    parts = [span for span in spans if span.name == f"{STREAM[1:]} request"]
    forwards = [span for span in spans if span.name == "forward"]
    assert not any("ServerLive" in span.name for span in spans)
    assert {infer.trace_id.hex(), whole.trace_id.hex()} == {TRACE_ID}
    assert {infer.parent_span_id.hex(), whole.parent_span_id.hex()} == {PARENT}
    assert refused.trace_id.hex() != TRACE_ID
    assert infer.kind == refused.kind == whole.kind == Span.SPAN_KIND_SERVER
    reported = attributes(infer)
    assert reported["rpc.system.name"] == "grpc"
    assert (reported["rpc.method"], reported["rpc.response.status_code"]) == (INFER[1:], "OK")
    assert reported["kuiper.model"] == "vector"
    reported = attributes(refused)
    assert (reported["rpc.response.status_code"], reported["error.type"]) == ("NOT_FOUND", "NOT_FOUND")
    assert {part.parent_span_id for part in parts} == {whole.span_id}
    assert len(parts) == 2
    assert {forward.parent_span_id for forward in forwards} == {
        infer.span_id,
        *(part.span_id for part in parts),
    }
    for part in (infer, whole, *parts):
        assert part.start_time_unix_nano < part.end_time_unix_nano
