"""Deadlines, clients that leave, health, and what is recorded of calls."""

import re
from collections.abc import Iterator

import grpc
import httpx
import pytest
from tritonclient.grpc import service_pb2

from service.grpc.messages import message_class
from tests.service.grpc.servers import INFER, RawClient, blocked, grpc_address, reported, serving_both
from tests.service.server.process import SOON, ServerProcess

_Status = message_class("grpc.health.v1.HealthCheckResponse")
_Health = message_class("grpc.health.v1.HealthCheckRequest")


@pytest.fixture(scope="module")
def grpc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One of its own: other tests leave runs behind that wait."""
    with serving_both(tmp_path_factory.mktemp("own")) as started:
        yield started


@pytest.fixture(scope="module")
def address(grpc_server: ServerProcess) -> str:
    return grpc_address(grpc_server)


def counts(server: ServerProcess, metric: str) -> dict[str, int]:
    """Return a metric of the blocking model, by reason where it has one."""
    text = httpx.get(f"{server.url}/metrics", timeout=SOON).text
    found = re.findall(
        rf'^{metric}\{{model="blocking",(?:reason="(\w+)",)?version="1"\}} (\d+)', text, re.MULTILINE
    )
    assert found, metric
    return {reason: int(count) for reason, count in found}


def until_changed(server: ServerProcess, metric: str, before: dict[str, int]) -> dict[str, int]:
    """Return a metric as soon as it is another than before."""
    for _ in range(5000):
        if (after := counts(server, metric)) != before:
            return after
    raise AssertionError(f"{metric} stays {before}")


FAILURES, WAITING = "nv_inference_request_failure", "nv_inference_pending_request_count"


def test_the_deadline_of_a_call_is_that_of_its_request(raw: RawClient, grpc_server: ServerProcess) -> None:
    before = counts(grpc_server, FAILURES)
    call = raw.channel.unary_unary(INFER).future(blocked(50), timeout=6)
    assert grpc_server.entered.take() == 50
    assert call.exception().code() is grpc.StatusCode.DEADLINE_EXCEEDED
    after = until_changed(grpc_server, FAILURES, before)
    grpc_server.gate.give()
    assert after == before | {"CANCELED": before["CANCELED"] + 1}


def test_a_request_whose_client_leaves_is_dropped_from_the_queue(
    raw: RawClient, grpc_server: ServerProcess
) -> None:
    infer = raw.channel.unary_unary(INFER)
    working = [infer.future(blocked(number), timeout=SOON) for number in (51, 52)]
    assert {grpc_server.entered.take(), grpc_server.entered.take()} == {51, 52}  # both workers
    before, idle = counts(grpc_server, FAILURES), counts(grpc_server, WAITING)
    waiting = infer.future(blocked(53), timeout=SOON)
    until_changed(grpc_server, WAITING, idle)
    waiting.cancel()
    until_changed(grpc_server, FAILURES, before)
    grpc_server.gate.give(2)
    for call in working:
        call.result()
    again = infer.future(blocked(54), timeout=SOON)
    assert grpc_server.entered.take() == 54  # and not 53
    grpc_server.gate.give()
    again.result()


def test_the_parameter_timeout_and_the_deadline_both_hold(raw: RawClient, grpc_server: ServerProcess) -> None:
    entry = {"timeout": service_pb2.InferParameter(int64_param=4_000_000)}
    call = raw.channel.unary_unary(INFER).future(blocked(55, parameters=entry), timeout=SOON)
    assert grpc_server.entered.take() == 55
    status, code, sentence = reported(call.exception())
    grpc_server.gate.give()
    assert (status, code, "4 s" in sentence) == ("DEADLINE_EXCEEDED", "timeout", True)


def test_health(raw: RawClient) -> None:
    check = raw.channel.unary_unary("/grpc.health.v1.Health/Check")
    for service in ("", "inference.GRPCInferenceService", "grpc.health.v1.Health"):
        response = check(_Health(service=service).SerializeToString(), timeout=SOON)
        assert _Status.FromString(response).status == 1
    with pytest.raises(grpc.RpcError) as caught:
        check(_Health(service="none").SerializeToString(), timeout=SOON)
    assert reported(caught.value)[:2] == ("NOT_FOUND", "service_not_found")
    watch = raw.channel.unary_stream("/grpc.health.v1.Health/Watch")
    long = _Health(service="n" * 5000).SerializeToString()
    for ask in (lambda: check(long, timeout=SOON), lambda: list(watch(long, timeout=SOON))):
        with pytest.raises(grpc.RpcError) as caught:
            ask()
        assert reported(caught.value)[:2] == ("RESOURCE_EXHAUSTED", "body_too_large")
    for service, status in (("", 1), ("none", 3)):
        responses = watch(_Health(service=service).SerializeToString(), timeout=SOON)
        assert _Status.FromString(next(responses)).status == status
        responses.cancel()


def test_a_call_is_logged_and_counted_under_its_id(raw: RawClient, grpc_server: ServerProcess) -> None:
    name = "inference.GRPCInferenceService/ModelMetadata"
    data = service_pb2.ModelMetadataRequest(name="pair").SerializeToString()
    _, call = raw.channel.unary_unary(f"/{name}").with_call(
        data, timeout=SOON, metadata=(("x-request-id", "sent-by-me"),)
    )
    assert dict(call.trailing_metadata())["x-request-id"] == "sent-by-me"
    raw.refusal(b"", method="ModelMetadata", metadata=(("x-request-id", "sent-again"),))
    grpc_server.wait_for_line(re.compile("sent-again"))  # it is recorded once it is answered
    metrics = httpx.get(f"{grpc_server.url}/metrics", timeout=SOON).text
    for status in ("OK", "NOT_FOUND"):
        labels = f'rpc_method="{name}",rpc_response_status_code="{status}",rpc_system_name="grpc"'
        assert re.search(rf"rpc_server_call_duration_seconds_count{{{labels}}} [1-9]", metrics), metrics
    lines = [line for line in grpc_server.lines if "sent-by-me" in line or "sent-again" in line]
    assert [re.search(r"method=(\w+) path=(\S+) status=(\w+)", line).groups() for line in lines] == [  # type: ignore[union-attr]
        ("gRPC", f"/{name}", "OK"),
        ("gRPC", f"/{name}", "NOT_FOUND"),
    ]
    assert "model=pair" in lines[0]


def test_a_traced_run_is_kept_with_its_protocol(raw: RawClient, grpc_server: ServerProcess) -> None:
    entry = service_pb2.ModelInferRequest.InferInputTensor(name="in", datatype="FP32", shape=[1, 2])
    message = service_pb2.ModelInferRequest(
        model_name="same_f32", inputs=[entry], raw_input_contents=[bytes(8)]
    )
    message.parameters["trace"].bool_param = True
    raw.call(message.SerializeToString(), metadata=(("x-request-id", "traced"),))
    kept = httpx.get(f"{grpc_server.url}/traces/traced", timeout=SOON).json()
    assert (kept["protocol"], kept["ending"]) == ("grpc", "SUCCESS")
