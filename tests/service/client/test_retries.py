"""When calls are sent again, with a transport that answers what the test says."""

import httpx
import numpy as np
import pytest

from service.client import (
    BusyError,
    Client,
    ConnectionFailedError,
    DeadlineError,
    InvalidInputError,
    ResponseError,
    Retries,
    ServerError,
)

MODELS = httpx.Response(200, json={"models": []})
BUSY = httpx.Response(503, json={"error": "full", "code": "queue_full"}, headers={"Retry-After": "1"})
BROKEN = httpx.Response(503, json={"error": "broken", "code": "model_broken"})


class Scripted(httpx.BaseTransport):
    """Returns one thing after the other; the last of them for ever."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.responses = list(responses)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        response = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(response, Exception):
            raise response
        return httpx.Response(response.status_code, content=response.content, headers=response.headers)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which take no time."""
    waits: list[float] = []
    monkeypatch.setattr("service.client.blocking.time.sleep", waits.append)
    return waits


def test_retry_after_is_heeded_with_up_to_a_quarter_more(slept: list[float]) -> None:
    transport = Scripted(BUSY, BUSY, MODELS)
    with Client(transport=transport) as client:
        assert client.models() == []
    assert len(slept) == 2
    assert all(1 <= wait <= 1.25 for wait in slept)


def test_it_ends_when_the_seconds_are_over(slept: list[float]) -> None:
    transport = Scripted(BUSY)
    with Client(transport=transport, retries=Retries(seconds=3)) as client, pytest.raises(BusyError):
        client.models()
    assert len(slept) == 2  # a third wait would take it beyond 3 s, whatever the jitter
    assert len(transport.requests) == 3


def test_it_ends_before_the_deadline(slept: list[float]) -> None:
    with Client(transport=Scripted(BUSY)) as client, pytest.raises(BusyError):
        client.infer(np.zeros(1, np.float32), deadline=0.9)
    assert not slept


def test_all_calls_share_one_budget(slept: list[float]) -> None:
    with Client(transport=Scripted(BUSY), retries=Retries(seconds=1.5, ratio=0.5)) as client:
        for _ in range(40):
            with pytest.raises(BusyError):
                client.models()
    assert len(slept) == pytest.approx(10 + 40 * 0.5, abs=1)


def test_connections_are_tried_again_with_growing_waits(slept: list[float]) -> None:
    transport = Scripted(httpx.ConnectError("refused"), httpx.ConnectTimeout("late"), MODELS)
    with Client(transport=transport) as client:
        assert client.models() == []
    assert 0.1 <= slept[0] <= 0.125
    assert 0.2 <= slept[1] <= 0.25


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (BROKEN, BusyError),
        (httpx.Response(500, json={}), ServerError),
        (httpx.Response(502, text="<html>"), ServerError),
        (httpx.Response(504, json={"error": "late", "code": "timeout"}), DeadlineError),
        (httpx.ReadError("reset"), ConnectionFailedError),
    ],
)
def test_nothing_else_is_sent_again(
    slept: list[float], response: httpx.Response | Exception, error: type[Exception]
) -> None:
    transport = Scripted(response)
    with Client(transport=transport) as client, pytest.raises(error):
        client.models()
    assert len(transport.requests) == 1
    assert not slept


def test_the_server_gets_the_time_that_is_left() -> None:
    transport = Scripted(httpx.Response(400, json={}))
    with Client(transport=transport) as client:
        with pytest.raises(Exception, match="without a reason"):
            client.predict(np.zeros(1, np.float32), deadline=8)
        with pytest.raises(Exception, match="without a reason"):
            client.infer({"a": np.zeros(1, np.float32)}, model="m", deadline=8)
        for explained in (np.zeros(1, np.float32), "a text"):
            with pytest.raises(Exception, match="without a reason"):
                client.explain(explained, model="m", deadline=8)
    assert all(7 < float(sent.url.params["timeout"]) <= 8 for sent in transport.requests[2:])
    assert 7 < float(transport.requests[0].url.params["timeout"]) <= 8
    assert (
        b'"timeout":7' in transport.requests[1].content
        or b'"timeout":8000000' in transport.requests[1].content
    )


def test_names_of_inputs_are_asked_for_once_and_again_after_a_refusal() -> None:
    names = httpx.Response(200, json={"inputs": [{"operand": "a"}]})
    transport = Scripted(names, httpx.Response(400, json={}), names, httpx.Response(400, json={}))
    with Client(transport=transport) as client:
        for _ in range(2):
            with pytest.raises(Exception, match="without a reason"):
                client.infer(np.zeros(1, np.float32), model="m")
    assert [request.method for request in transport.requests] == ["GET", "POST", "GET", "POST"]


def test_retries_are_numbers_from_0() -> None:
    with pytest.raises(ValueError, match="expected numbers from 0"):
        Retries(seconds=-1)


def test_a_response_that_cannot_be_decompressed_is_none() -> None:
    torn = httpx.Response(200, content=b"hello")
    torn.headers["content-encoding"] = "gzip"
    with Client(transport=Scripted(torn)) as client, pytest.raises(ResponseError, match="decompressed"):
        client.models()


@pytest.mark.parametrize("models", [None, 3, [1], [{"title": "m"}]])
def test_a_response_without_models_is_reported(models: object) -> None:
    transport = Scripted(httpx.Response(200, json={"models": models}))
    with Client(transport=transport) as client, pytest.raises(ResponseError, match="no models"):
        client.models()


@pytest.mark.parametrize("key", ["", "schl\u00fcssel", "one\ntwo"])
def test_a_key_is_what_a_header_can_carry(key: str) -> None:
    with pytest.raises(ValueError, match="one line of ASCII"):
        Client(key=key)


def test_a_misspelled_option_is_no_option() -> None:
    transport = Scripted(httpx.Response(200, json={"inputs": [{"operand": "a"}]}))
    rows = np.zeros(1, np.float32)
    with Client(transport=transport) as client:
        for call in (client.infer, client.predict, client.trace):
            with pytest.raises(TypeError, match="verison: no such option"):
                call(rows, model="m", verison=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="verison: no such option"):
            client.infer({"a": rows}, model="m", verison=1)  # type: ignore[call-arg]
    assert not transport.requests


def test_names_of_inputs_and_the_run_share_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    class Slow(Scripted):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            now[0] += 3
            return super().handle_request(request)

    transport = Slow(httpx.Response(200, json={"inputs": [{"operand": "a"}]}), httpx.Response(400, json={}))
    with Client(transport=transport) as client, pytest.raises(InvalidInputError):
        client.infer(np.zeros(1, np.float32), model="m", deadline=8)
    assert b'"timeout":5000000' in transport.requests[1].content
