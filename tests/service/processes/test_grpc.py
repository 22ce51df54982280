"""Two processes that answer gRPC on one port: the real command, its signals, and what clients see."""

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import grpc
import httpx
import numpy as np
import pytest
import trustme
from tritonclient.grpc import service_pb2

from tests.service.grpc.servers import INFER, RawClient, grpc_address
from tests.service.grpc.test_streaming import STREAM, Sender, response
from tests.service.models import add_model
from tests.service.processes.calls import Callers, channels, message, values_of
from tests.service.processes.gated import FOLDER, GATED
from tests.service.processes.test_processes import RESTARTED, SERVES, children, samples, start
from tests.service.processes.test_restarts import close, until_entered
from tests.service.server.process import SOON, ServerProcess, run_to_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several processes answer gRPC on Linux only")
_SPREAD = 16
"""Connections of which each process takes some."""


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    flags = ("--grpc-port", "0", "--model-control", "explicit", "--trace-rate", "0")
    with start(models, *flags) as started:
        yield started


def answered(server: ServerProcess) -> tuple[float, float]:
    """Return how many runs and how many calls succeeded, as `/metrics` of any process shows."""
    found = samples(server)
    (calls,) = [
        value
        for name, value in found.items()
        if name.startswith("rpc_server_call_duration_seconds_count")
        and "ModelInfer" in name
        and '"OK"' in name
    ]
    return found['nv_inference_request_success{model="vector",version="1"}'], calls


def test_rolling_restart_loses_no_calls(server: ServerProcess) -> None:
    before = children(server)
    with Callers(grpc_address(server)) as callers:
        callers.until_answered(50)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(RESTARTED)
        callers.until_answered(50)
    assert not callers.errors
    assert not set(children(server).values()) & set(before.values())
    runs, calls = answered(server)
    assert runs == calls == callers.answered
    (statistics,) = httpx.get(f"{server.url}/v2/models/vector/stats", timeout=SOON).json()["model_stats"]
    with channels(grpc_address(server), 1) as (channel,):
        data = RawClient(channel).call(b"", "ModelStatistics")
    (reported,) = service_pb2.ModelStatisticsResponse.FromString(data).model_stats
    assert reported.inference_stats.success.count == runs
    assert reported.inference_count == statistics["inference_count"] == runs


def test_killed_process_takes_only_its_own_connections(server: ServerProcess) -> None:
    with Callers(grpc_address(server), 8) as callers:
        callers.until_answered(50)
        killed = monotonic()
        os.kill(children(server)[0], signal.SIGKILL)
        server.wait_for_line(SERVES)
        restart = monotonic() - killed
        callers.until_answered(50)
    assert {code for code, _, _ in callers.errors} <= {"UNAVAILABLE"}
    # who connects again at once may meet a socket of the killed process that the kernel has not closed yet
    assert all(caller.errors.total() <= 2 for caller in callers.callers)
    assert max(caller.longest for caller in callers.callers) < max(5.0, restart / 2), (
        "clients wait for nobody"
    )
    runs, calls = answered(server)
    most = callers.answered + callers.errors.total()
    assert callers.answered <= calls <= most, "what the killed process has counted is kept"
    assert callers.answered <= runs <= most


def test_changes_are_refused_in_words(server: ServerProcess) -> None:
    named = service_pb2.RepositoryModelLoadRequest(model_name="vector").SerializeToString()
    trace = service_pb2.TraceSettingRequest()
    trace.settings["trace_rate"].value.append("7")
    log = service_pb2.LogSettingsRequest()
    log.settings["log_verbose_level"].uint32_param = 1
    changes = [(named, "RepositoryModelLoad"), (named, "RepositoryModelUnload")]
    changes += [(trace.SerializeToString(), "TraceSetting"), (log.SerializeToString(), "LogSettings")]
    with channels(grpc_address(server), 1) as (channel,):
        client = RawClient(channel)
        for data, method in changes:
            status, code, text = client.refusal(data, method)
            assert (status, code) == ("PERMISSION_DENIED", "needs_one_process")
            assert "--model-control poll" in text


def test_streams_go_on_while_their_process_is_replaced(server: ServerProcess) -> None:
    with channels(grpc_address(server), 1) as (channel,):
        sender = Sender()
        stream = channel.stream_stream(STREAM)(iter(sender), timeout=SOON)
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=SOON)
        assert next(watch)
        sender.send(message())
        assert response(next(stream)).infer_response.model_name == "vector"
        server.process.send_signal(signal.SIGHUP)
        with pytest.raises(grpc.RpcError) as ended:  # whoever watches asks the new process
            next(watch)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        sender.send(message())
        assert response(next(stream)).infer_response.model_name == "vector"
        sender.send(None)
        assert list(stream) == []
        server.wait_for_line(RESTARTED)
        assert values_of(channel.unary_unary(INFER)(message(), timeout=SOON)) == [1, 0, 3]


def test_signal_ends_all_when_calls_are_answered(tmp_path: Path) -> None:
    add_model(tmp_path / "gated", "vector", GATED)
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    flags = (
        "--models",
        str(tmp_path / "gated"),
        "--processes",
        "2",
        "--backend",
        "numpy",
        "--grpc-port",
        "0",
        "--log-level",
        "debug",
    )
    gated = ServerProcess(*flags, module="tests.service.processes.gated", environment={FOLDER: str(pipes)})
    with gated as server, channels(grpc_address(server), 1) as (channel,):
        call = channel.unary_unary(INFER)
        assert values_of(call(message(), timeout=SOON)) == [1, 0, 3]
        pipe = close(pipes)
        begun = call.future(message(), timeout=SOON)
        until_entered(pipe)
        server.terminate()
        for _ in range(2):  # each process at a moment of its own
            server.wait_for_line(re.compile("draining: [01] requests"))
        # gRPC itself cancels calls that arrive while its server shuts down
        refused = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        assert call.future(message(), timeout=SOON).exception().code() in refused
        (pipes / "gate").write_bytes(b"")
        assert values_of(begun.result()) == [1, 0, 3]
        assert server.exit_code() == 0


def test_certificates_are_those_of_https(models: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    own, theirs = authority.issue_cert("127.0.0.1"), authority.issue_cert("client.test")
    own.cert_chain_pems[0].write_to_path(folder / "server.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    own.private_key_pem.write_to_path(folder / "key.pem")
    flags = {"certfile": "server.pem", "keyfile": "key.pem", "ca-certs": "ca.pem"}
    given = [text for name, file in flags.items() for text in (f"--ssl-{name}", str(folder / file))]
    two = ("--models", str(models), "--processes", "2", "--grpc-port", "0")
    ca, mine = authority.cert_pem.bytes(), theirs.private_key_pem.bytes()
    known = grpc.ssl_channel_credentials(ca, mine, theirs.cert_chain_pems[0].bytes())
    with ServerProcess(*two, *given) as server:
        address = grpc_address(server)
        with grpc.secure_channel(address, known) as channel:
            assert values_of(channel.unary_unary(INFER)(message(), timeout=SOON)) == [1, 0, 3]
        with grpc.secure_channel(address, grpc.ssl_channel_credentials(ca)) as channel:
            assert RawClient(channel).refusal(message())[0] == "UNAVAILABLE"
        with grpc.insecure_channel(address) as channel:
            assert RawClient(channel).refusal(message())[0] == "UNAVAILABLE"


def test_large_messages_come_whole(models: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((300_000, 3), np.float32)
    options = [("grpc.max_receive_message_length", -1)]
    with (
        start(models, "--grpc-port", "0") as server,
        grpc.insecure_channel(grpc_address(server), options=options) as channel,
    ):
        response = channel.unary_unary(INFER)(message(rows), timeout=SOON)
    (output,) = service_pb2.ModelInferResponse.FromString(response).raw_output_contents
    assert output == np.maximum(rows, 0).tobytes()


def test_a_port_in_use_is_reported_in_words(models: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_to_end("--models", str(models), "--processes", "2", "--grpc-port", str(port))
    assert ended.returncode == 3
    assert len(ended.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}: address already in use; choose another port with --grpc-port" in ended.stderr
