"""One connection and its requests, step by step."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from service.server.fast_path.body_reader import BodyReader
from service.server.fast_path.request import DirectRequest
from service.server.reader import PacketReader
from service.services import services_of
from tests.service.scheduling.stubs import until
from tests.service.server.fast_path.cases import GOOD, VECTOR
from tests.service.server.fast_path.pipe import Talk
from tests.service.server.fast_path.wire import Ask

pytestmark = pytest.mark.anyio
PLAIN = Ask(VECTOR, GOOD)
REFUSED = Ask("/v2/models/vector/infer", b"{")


@pytest.fixture
async def talk(app: FastAPI) -> AsyncIterator[Talk]:
    created = Talk(app)
    yield created
    created.leave()
    assert services_of(app).lifecycle.accepted == 0


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def taken(talk: Talk) -> DirectRequest | None:
    """Return the request that the connection itself is answering."""
    return talk.connection._direct


@pytest.mark.parametrize("form", [Ask.escaped, Ask.with_trailer, Ask.chunked])
async def test_only_plain_requests_are_taken(talk: Talk, form: Any) -> None:
    talk.say(PLAIN.plain())
    assert taken(talk) is not None
    assert (await talk.replies())[0].status == 200
    assert taken(talk) is None
    talk.say(form(PLAIN))
    assert taken(talk) is None
    assert (await talk.replies())[0].status == 200


@pytest.mark.parametrize(
    "case",
    [
        Ask("/infer?model=none", GOOD),
        Ask("/infer?model=vector&trace=x", GOOD),
        Ask("/v2/models/none/infer", GOOD),
        Ask("/v2/models/vector", GOOD),
        Ask("/v2/models//infer", GOOD),
        Ask("/v2/models/infer", GOOD),
        Ask("/v2/models/vector/x/1/infer", GOOD),
        Ask(VECTOR, bytes(10_001)),
        Ask(VECTOR, GOOD, (("Accept", "text/html"),)),
        Ask(VECTOR, GOOD, version="1.0"),
    ],
)
async def test_what_is_refused_by_its_head_is_left_to_the_application(talk: Talk, case: Ask) -> None:
    talk.say(case.plain())
    assert taken(talk) is None
    assert (await talk.replies())[0].status >= (200 if case.version == "1.0" else 400)


@pytest.mark.parametrize("much", [1, 1000])
@pytest.mark.parametrize("case", [PLAIN, REFUSED, Ask(VECTOR, b"{")])
async def test_nothing_of_a_request_outlives_its_answer(
    talk: Talk, no_collection: None, monkeypatch: pytest.MonkeyPatch, case: Ask, much: int
) -> None:
    monkeypatch.setattr("service.server.connection.MUCH", much)
    talk.say(case.plain()[:-1])
    request = taken(talk)
    assert request is not None
    watched = weakref.ref(request)
    del request
    talk.say(case.plain()[-1:])
    await talk.replies()
    await until(lambda: watched() is None)


async def test_body_may_be_read_past_the_parser(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.server.connection.MUCH", 2)
    packet = PLAIN.plain()
    for cut in range(packet.index(b"{"), len(packet)):
        talk.say(packet[:cut])
        assert isinstance(talk.pipe.protocol, BodyReader) == (len(packet) - cut >= 2)
        talk.say(packet[cut:] + REFUSED.plain() + PLAIN.escaped())
        assert isinstance(talk.pipe.protocol, PacketReader)
        assert [reply.status for reply in await talk.replies(3)] == [200, 400, 200]


async def test_connection_does_not_close_as_idle_while_a_request_is_answered(talk: Talk) -> None:
    talk.say(REFUSED.plain() + PLAIN.plain())
    assert talk.connection.timeout_keep_alive_task is None
    assert [reply.status for reply in await talk.replies(2)] == [400, 200]
    assert talk.connection.timeout_keep_alive_task is not None


async def test_fault_is_answered_without_its_insides(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("secret")

    for place in ("service.infer.inference.decode", "service.infer.inference.InferIntake.call"):
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
            patch.setattr(place, broken)
            talk.say(Ask(VECTOR, GOOD, (("X-Request-ID", "r9"),)).plain())
            (reply,) = await talk.replies()
        assert (reply.status, reply.json()["code"]) == (500, "internal_error")
        assert reply.json()["details"] == {"request_id": "r9"}
        assert b"secret" not in reply.body
        assert "secret" in caplog.text
        talk.say(PLAIN.plain())
        assert (await talk.replies())[0].status == 200


async def test_fault_before_a_request_is_taken_is_the_applications(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("secret")

    with monkeypatch.context() as patch:
        patch.setattr("service.server.fast_path.desk.open_inference", broken)
        patch.setattr("service.routes.infer.open_inference", broken)
        talk.say(PLAIN.plain())
        (reply,) = await talk.replies()
    assert (reply.status, reply.json()["code"]) == (500, "internal_error")
    talk.say(PLAIN.plain())
    assert (await talk.replies())[0].status == 200


@pytest.mark.parametrize("much", [1, 1000])
@pytest.mark.parametrize("sent", [-1, -5, -len(GOOD)])
async def test_client_that_leaves_before_its_body_has_come_is_forgotten(
    app: FastAPI, sent: int, much: int, no_collection: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.server.connection.MUCH", much)
    talk = Talk(app)
    talk.say(PLAIN.plain()[:sent])
    assert services_of(app).lifecycle.accepted == 1
    request = taken(talk)
    assert request is not None
    watched = weakref.ref(request)
    del request
    talk.leave()
    assert services_of(app).lifecycle.accepted == 0
    assert talk.pipe.sent == b""
    await asyncio.sleep(0)
    assert watched() is None


async def test_client_that_leaves_while_its_request_is_answered_is_sent_nothing(app: FastAPI) -> None:
    talk = Talk(app)
    talk.say(PLAIN.plain() + PLAIN.plain() + PLAIN.escaped())
    talk.leave()
    await until(lambda: services_of(app).lifecycle.accepted == 0)
    assert talk.pipe.sent == b""


@pytest.mark.parametrize("much", [1, 1000])
async def test_late_body_is_no_request_of_its_own(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, much: int
) -> None:
    monkeypatch.setattr("service.server.connection.MUCH", much)
    talk = Talk(app)
    packet = PLAIN.plain()
    talk.say(packet[:-5])
    request = taken(talk)
    assert request is not None
    request._body_is_late()
    talk.say(packet[-5:])
    assert [reply.status for reply in await talk.replies()] == [408]
    assert not talk.pipe.is_open
    talk.leave()
