"""SIGTERM: health says so, calls that have begun are answered, others go elsewhere; starts that fail; lost clients."""

import socket
from pathlib import Path

import grpc
import numpy as np
from tritonclient.grpc import service_pb2

from service.config.settings import Settings
from service.grpc.messages import message_class
from service.grpc.options import channel_options
from tests.service.grpc.servers import INFER, blocked, grpc_address
from tests.service.grpc.test_streaming import STREAM, Sender, response
from tests.service.models import VECTOR, add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import SOON, ServerProcess, run_to_end

_Status = message_class("grpc.health.v1.HealthCheckResponse")


def test_what_has_begun_is_answered(tmp_path: Path) -> None:
    add_model(tmp_path, "blocking", BLOCKING)
    flags = ("--models", str(tmp_path), "--no-warm-up", "--workers", "1", "--grpc-port", "0")
    with ServerProcess(*flags) as server, grpc.insecure_channel(grpc_address(server)) as channel:
        health = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=SOON)
        assert _Status.FromString(next(health)).status == 1
        begun = channel.unary_unary(INFER).future(blocked(1), timeout=SOON)
        assert server.entered.take() == 1
        sender = Sender()
        stream = channel.stream_stream(STREAM)(iter(sender), timeout=SOON)
        sender.send(blocked(2, id="streamed"))
        server.terminate()
        assert {_Status.FromString(response).status for response in health} == {2}
        with grpc.insecure_channel(grpc_address(server)) as late:
            refused = late.unary_unary(INFER).future(blocked(3), timeout=SOON).exception()
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        server.gate.give(2)
        first = service_pb2.ModelInferResponse.FromString(begun.result())
        assert np.frombuffer(first.raw_output_contents[0], np.float32).tolist() == [1]
        responses: list[str] = []
        status = None
        try:
            responses.extend(response(data).infer_response.id for data in stream)
        except grpc.RpcError as error:
            status = error.code()
        sender.send(None)
        assert (responses, status) in (
            (["streamed"], grpc.StatusCode.UNAVAILABLE),
            ([], grpc.StatusCode.UNAVAILABLE),  # it came after the signal
        )
        assert server.exit_code() == 0


def test_a_port_in_use_is_reported_in_words(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_to_end("--models", str(tmp_path), "--no-warm-up", "--grpc-port", str(port))
    assert ended.returncode == 3
    assert f"127.0.0.1:{port}: address already in use; choose another port with --grpc-port" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_clients_that_are_gone_without_a_word_are_aborted() -> None:
    options = dict(channel_options(Settings(), is_shared=False))
    assert options["grpc.keepalive_time_ms"] == 30_000
    assert options["grpc.keepalive_timeout_ms"] == options["grpc.http2.ping_timeout_ms"] == 60_000
