"""Faults on the way of an answer, and what they must not take along."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI

from service.server.connection import Connection
from service.server.fast_path import desk_of
from service.services import services_of
from tests.service.scheduling.stubs import until
from tests.service.server.fast_path.cases import GOOD, VECTOR
from tests.service.server.fast_path.pipe import Talk
from tests.service.server.fast_path.wire import Ask
from tests.service.v2.bodies import json_input

pytestmark = pytest.mark.anyio
PLAIN = Ask(VECTOR, GOOD)
REFUSED = Ask("/v2/models/vector/infer", b"{")
ROUTE = ("POST", "/infer", "500")


@pytest.fixture
async def talk(app: FastAPI) -> AsyncIterator[Talk]:
    created = Talk(app)
    yield created
    created.leave()
    assert services_of(app).lifecycle.accepted == 0
    assert desk_of(app)._budget.used == 0


def broken(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("secret")


async def test_answer_that_cannot_be_worded_is_a_fault_of_the_server(
    app: FastAPI, talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("service.server.fast_path.request._headers", broken)
        talk.say(PLAIN.plain())
        (reply,) = await talk.replies()
    assert (reply.status, reply.json()["code"]) == (500, "internal_error")
    assert "secret" in caplog.text
    assert dict(services_of(app).telemetry.http_requests.series())[ROUTE].count == 1
    talk.say(PLAIN.plain())
    assert (await talk.replies())[0].status == 200


async def test_answer_that_cannot_be_sent_ends_the_connection_and_nothing_else(
    app: FastAPI, talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Connection, "send", broken)
    talk.say(PLAIN.plain())
    await until(lambda: not talk.pipe.is_open)
    assert talk.pipe.sent == b""
    assert "an answer could not be sent" in caplog.text
    assert dict(services_of(app).telemetry.http_requests.series())[ROUTE].count == 1


async def test_number_of_more_than_64_bits_is_repeated_in_the_error(talk: Talk) -> None:
    size = 2**63 - 1
    entry = {**json_input("0", np.zeros((1, 3), np.float32)), "parameters": {"binary_data_size": size}}
    del entry["data"]
    body = json.dumps({"inputs": [entry] * 3}).encode()
    headers = (("Inference-Header-Content-Length", str(len(body))),)
    for form in (Ask.plain, Ask.escaped):
        talk.say(form(Ask("/v2/models/vector/infer", body, headers)))
        (reply,) = await talk.replies()
        assert (reply.status, reply.json()["code"]) == (400, "wrong_size")
        assert reply.json()["details"]["expected"] == 3 * size


async def test_request_that_cannot_be_taken_gives_its_room_back(
    app: FastAPI, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("service.server.fast_path.desk.DirectRequest", broken)
        talk.say(PLAIN.plain()[:-1])
        assert talk.connection._direct is None
        assert desk_of(app)._budget.used == 0
        talk.say(PLAIN.plain()[-1:])
        assert (await talk.replies())[0].status == 200


async def test_no_more_than_one_request_of_a_packet_is_taken(talk: Talk) -> None:
    """Many that are refused at once would keep the event loop from all else."""
    talk.say(REFUSED.plain() * 3)
    assert talk.pipe.sent.count(b"HTTP/1.1 ") == 1
    assert [reply.status for reply in await talk.replies(3)] == [400] * 3
    talk.say(REFUSED.plain())
    assert talk.pipe.sent.count(b"HTTP/1.1 ") == 1


async def test_body_that_does_not_come_is_refused_when_the_server_ends(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.server.connection.LAST_SECONDS", 0.0)
    talk, whole = Talk(app), Talk(app)
    talk.say(PLAIN.plain()[:-1])
    whole.say(PLAIN.plain()[:-1])
    for one in (talk, whole):
        one.connection.shutdown()
    whole.say(PLAIN.plain()[-1:])
    (reply,) = await talk.replies()
    assert (reply.status, reply.json()["code"]) == (503, "shutting_down")
    assert (await whole.replies())[0].status == 200
    for one in (talk, whole):
        await until(lambda pipe=one.pipe: not pipe.is_open)  # type: ignore[misc]  # bound early
        one.leave()
    await asyncio.sleep(0)
    assert services_of(app).lifecycle.accepted == 0
