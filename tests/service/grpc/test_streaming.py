"""`ModelStreamInfer`, by Triton's client and by bare messages."""

import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from service.grpc.streaming import MAX_STREAMS
from tests.service.grpc.servers import RawClient, grpc_address, reported, serving_both, tensor
from tests.service.server.process import SOON, ServerProcess
from tests.service.v2.calls import PAIR

STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"


@pytest.fixture(scope="module")
def grpc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One of its own: other tests leave runs behind that wait."""
    with serving_both(tmp_path_factory.mktemp("own")) as started:
        yield started


@pytest.fixture(scope="module")
def address(grpc_server: ServerProcess) -> str:
    return grpc_address(grpc_server)


def request(model: str, value: float, own_id: str = "") -> bytes:
    name, shape = {"blocking": ("0", [1]), "same_f32": ("in", [1, 2])}[model]
    entry = service_pb2.ModelInferRequest.InferInputTensor(name=name, datatype="FP32", shape=shape)
    data = np.full(shape, value, np.float32).tobytes()
    message = service_pb2.ModelInferRequest(
        model_name=model, id=own_id, inputs=[entry], raw_input_contents=[data]
    )
    written = message.SerializeToString()
    assert isinstance(written, bytes)
    return written


class Sender:
    """What a client sends, one message after the other, until it is closed."""

    def __init__(self) -> None:
        self._messages: Queue[bytes | None] = Queue()

    def send(self, *messages: bytes | None) -> None:
        for message in messages:
            self._messages.put(message)

    def __iter__(self) -> Iterator[bytes]:
        while (message := self._messages.get()) is not None:
            yield message


def response(data: Any) -> Any:
    return service_pb2.ModelStreamInferResponse.FromString(data)


def test_responses_come_in_the_order_of_the_requests(client: Any) -> None:
    responses: Queue[tuple[Any, Any]] = Queue()
    client.start_stream(lambda result, error: responses.put((result, error)))
    for number in range(30):
        arrays = PAIR[0] + np.float32(number), PAIR[1]
        inputs = [tensor(name, array) for name, array in zip("ab", arrays, strict=True)]
        client.async_stream_infer("pair", inputs, request_id=str(number))
    client.async_stream_infer("pair", inputs[:1], request_id="faulty")
    for number in range(30):
        result, error = responses.get(timeout=SOON)
        assert error is None
        assert result.get_response().id == str(number)
        assert result.get_response().parameters["triton_final_response"].bool_param
        np.testing.assert_array_equal(result.as_numpy("s"), [2 + number, -1 + number])
    result, error = responses.get(timeout=SOON)
    assert "missing" in str(error)
    client.stop_stream()


def test_errors_do_not_end_a_stream_unless_it_is_strict(raw: RawClient) -> None:
    messages = [request("same_f32", 1, "a"), b"\xff", request("same_f32", 2, "b")]
    stream = raw.channel.stream_stream(STREAM)
    responses = [response(data) for data in stream(iter(messages), timeout=SOON)]
    assert [bool(response.error_message) for response in responses] == [False, True, False]
    assert [response.infer_response.id for response in responses] == ["a", "", "b"]
    with pytest.raises(grpc.RpcError) as caught:
        list(stream(iter(messages), timeout=SOON, metadata=(("triton_grpc_error", "true"),)))
    assert reported(caught.value)[:2] == ("INVALID_ARGUMENT", "invalid_message")


def test_a_stream_that_never_ends_answers_each_request_as_it_comes(raw: RawClient) -> None:
    sender = Sender()
    responses = raw.channel.stream_stream(STREAM)(iter(sender), timeout=SOON)
    for number in range(3):
        sender.send(request("same_f32", number, str(number)))
        assert response(next(responses)).infer_response.id == str(number)
    responses.cancel()
    sender.send(None)


def test_a_client_that_leaves_a_stream_takes_its_requests_along(
    raw: RawClient, grpc_server: ServerProcess, client: Any
) -> None:
    sender = Sender()
    responses = raw.channel.stream_stream(STREAM)(iter(sender), timeout=SOON)
    sender.send(request("blocking", 41))
    assert grpc_server.entered.take() == 41
    before = canceled(client)
    responses.cancel()
    sender.send(None)
    while canceled(client) == before:  # until the server has heard of it
        threading.Event().wait(0.01)
    grpc_server.gate.give()
    assert client.is_model_ready("blocking")


def canceled(client: Any) -> int:
    count = client.get_inference_statistics("blocking").model_stats[0].inference_stats.fail.count
    assert isinstance(count, int)
    return count


def test_one_client_has_so_many_streams(raw: RawClient) -> None:
    senders = [Sender() for _ in range(MAX_STREAMS)]
    streams = [raw.channel.stream_stream(STREAM)(iter(sender), timeout=SOON) for sender in senders]
    for sender, responses in zip(senders, streams, strict=True):
        sender.send(request("same_f32", 1))
        assert not response(next(responses)).error_message
    with pytest.raises(grpc.RpcError) as caught:
        next(raw.channel.stream_stream(STREAM)(iter([request("same_f32", 1)]), timeout=SOON))
    assert reported(caught.value)[:2] == ("RESOURCE_EXHAUSTED", "too_many_streams")
    for sender in senders:
        sender.send(None)
    for responses in streams:
        assert not list(responses)


def test_a_client_that_does_not_read_is_not_read_from(raw: RawClient) -> None:
    large = request("same_f32", 1)
    entry = service_pb2.ModelInferRequest.FromString(large)
    rows = 20_000
    entry.inputs[0].shape[0] = rows
    entry.raw_input_contents[0] = bytes(rows * 8)
    large = entry.SerializeToString()
    taken = []

    def messages() -> Iterator[bytes]:
        for number in range(400):
            taken.append(number)
            yield large

    responses = raw.channel.stream_stream(STREAM)(messages(), timeout=SOON)
    assert not response(next(responses)).error_message  # the only one that is read
    assert raw.call(request("same_f32", 1))  # others are answered meanwhile
    responses.cancel()
    assert len(taken) < 400
