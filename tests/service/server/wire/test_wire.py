"""How requests and responses come over a connection: in pieces, several at once, and not at all."""

import random
import re
from collections.abc import Callable, Iterator

import pytest

from tests.service.models import PAIR, add_model
from tests.service.models import VECTOR as VECTOR_MODEL
from tests.service.server.process import ServerProcess
from tests.service.server.wire.cases import GOOD, VECTOR
from tests.service.server.wire.wire import Ask, Wire, ask, connected, dial


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR_MODEL)
    add_model(models, "pair", PAIR)
    with ServerProcess("--models", str(models), "--no-warm-up") as started:
        yield started


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    created = dial(server)
    yield created
    created.close()


@pytest.fixture(autouse=True)
def server_goes_on_serving(server: ServerProcess) -> Iterator[None]:
    yield
    for request in (Ask(VECTOR, GOOD).plain(), Ask(VECTOR, GOOD).escaped()):
        assert ask(server, request).status == 200


def named(number: int, body: bytes = GOOD, *headers: tuple[str, str]) -> Ask:
    return Ask(VECTOR, body, (("X-Request-ID", str(number)), *headers))


def check_order(wire: Wire, numbers: list[int]) -> list[int]:
    """Return the statuses of responses that come in order."""
    replies = [wire.reply() for _ in numbers]
    assert [reply.headers["x-request-id"] for reply in replies] == [str(number) for number in numbers]
    return [reply.status for reply in replies]


def test_connection_is_used_again(wire: Wire) -> None:
    for number in range(3):
        for request in (named(number).plain(), named(number).escaped(), named(number).chunked()):
            wire.send(request)
            assert check_order(wire, [number]) == [200]


@pytest.mark.parametrize("forms", ["pp", "pa", "ap", "ppppp", "papap", "appca", "aaapp", "ppapc"])
def test_requests_that_come_at_once_are_answered_in_order(wire: Wire, forms: str) -> None:
    make = {"p": Ask.plain, "a": Ask.escaped, "c": Ask.chunked}
    packet = b"".join(make[form](named(number)) for number, form in enumerate(forms))
    for _ in range(2):
        wire.send(packet)
        assert check_order(wire, list(range(len(forms)))) == [200] * len(forms)


@pytest.mark.parametrize("form", [Ask.plain, Ask.escaped])
def test_refused_requests_keep_their_place(wire: Wire, form: Callable[[Ask], bytes]) -> None:
    cases = [named(0, b"{"), named(1), named(2, b"[]"), named(3, b""), named(4)]
    broken = Ask("/v2/models/vector/infer", b"{", (("X-Request-ID", "5"),))
    wire.send(b"".join(form(case) for case in (*cases, broken, cases[1])))
    assert check_order(wire, [0, 1, 2, 3, 4, 5, 1]) == [400, 200, 415, 400, 200, 400, 200]


def test_bodies_come_in_any_pieces(wire: Wire) -> None:
    order = random.Random(7)
    request = named(1).plain() + named(2).escaped() + named(3).plain()
    for _ in range(20):
        cuts = sorted(order.sample(range(1, len(request)), 8))
        wire.send(*(request[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)))
        assert check_order(wire, [1, 2, 3]) == [200] * 3


def test_body_comes_byte_by_byte(wire: Wire) -> None:
    request = named(1).plain()
    wire.send(*(bytes([byte]) for byte in request))
    assert check_order(wire, [1]) == [200]


def test_head_and_body_come_each_by_itself(wire: Wire) -> None:
    for _ in range(3):
        head, _, body = named(1).plain().partition(b"\r\n\r\n")
        wire.send(head + b"\r\n\r\n", body)
        assert check_order(wire, [1]) == [200]


def test_body_of_a_mebibyte_is_read_whole(wire: Wire) -> None:
    for size in ((1 << 20) - 1, 1 << 20, (1 << 20) + 1):
        wire.send(named(1, GOOD + b" " * (size - len(GOOD))).plain())
        assert check_order(wire, [1]) == [200]


def test_body_that_does_not_come_is_aborted(impatient: ServerProcess) -> None:
    with connected(impatient) as wire:
        wire.send(named(1).plain()[:-1])
        reply = wire.reply()
        assert (reply.status, reply.json()["code"]) == (408, "body_timeout")
        assert reply.json()["details"] == {"timeout": 3}
        assert reply.headers["connection"] == "close"
        assert reply.headers["x-request-id"] == "1"
        assert wire.rest() == b""


def test_late_body_is_logged_with_its_id(impatient: ServerProcess) -> None:
    with connected(impatient) as wire:
        wire.send(Ask(VECTOR, GOOD, (("X-Request-ID", "late-1"),)).plain()[:-1])
        assert wire.reply().status == 408
    impatient.wait_for_line(re.compile("request .*request_id=late-1 .*status=408"))


def test_last_request_is_the_last(wire: Wire) -> None:
    wire.send(named(1, GOOD, ("Connection", "close")).plain())
    reply = wire.reply()
    assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert wire.rest() == b""


@pytest.mark.parametrize("behind", [Ask.plain, Ask.escaped])
@pytest.mark.parametrize("body", [GOOD, b"{"])
def test_nothing_runs_behind_the_last_request(
    server: ServerProcess, wire: Wire, body: bytes, behind: Callable[[Ask], bytes]
) -> None:
    last = Ask("/v2/models/vector/infer", body, (("Connection", "close"), ("X-Request-ID", "last")))
    wire.send(last.plain() + behind(Ask(VECTOR, GOOD, (("X-Request-ID", "behind"),))))
    assert wire.reply().headers["x-request-id"] == "last"
    assert wire.rest() == b""
    ask(server, Ask(VECTOR, GOOD, (("X-Request-ID", "after"),)).plain())
    server.wait_for_line(re.compile("request_id=after"))
    assert not [line for line in server.lines if "request_id=behind" in line]


@pytest.mark.parametrize("garbage", [b"\0\1\2\r\n\r\n", b"x" * 100 + b"\r\n\r\n"])
def test_garbage_behind_a_body_is_refused(wire: Wire, garbage: bytes) -> None:
    wire.send(named(1).plain())
    assert check_order(wire, [1]) == [200]
    wire.send(garbage)
    reply = wire.reply()
    assert (reply.status, reply.json()["code"]) == (400, "invalid_http")
    assert reply.headers["connection"] == "close"
    assert wire.rest() == b""


def test_garbage_in_the_packet_of_a_body_is_refused(wire: Wire) -> None:
    wire.send(named(1).plain() + b"\0\1\2\r\n\r\n")
    statuses = [wire.reply().status]
    if statuses == [200]:
        statuses.append(wire.reply().status)
    assert statuses[-1] == 400
    assert wire.rest() == b""
