"""Bodies and responses of many packets."""

import random
import re
from collections.abc import Iterator

import pytest

from service.server.reader import PACKET_BYTES
from tests.service.models import VECTOR as VECTOR_MODEL
from tests.service.models import add_model
from tests.service.server.process import ServerProcess
from tests.service.server.wire.cases import VECTOR
from tests.service.server.wire.large import SMALL, check, large
from tests.service.server.wire.wire import Ask, Wire, ask, connected
from tests.service.v2.models import SAME, TRIPLED


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR_MODEL)
    add_model(models, "same", SAME.format(dtype="f32"))
    add_model(models, "triple", TRIPLED)
    with ServerProcess("--models", str(models), "--no-warm-up") as started:
        yield started


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Wire]:
    with connected(server) as created:
        yield created


@pytest.mark.parametrize("size", [PACKET_BYTES - 1000, PACKET_BYTES, PACKET_BYTES + 8, 300_000, 1_040_000])
def test_large_body_is_read_whole_and_what_follows_is_another_request(wire: Wire, size: int) -> None:
    for _ in range(2):
        wire.send(large(size).plain() + SMALL.plain() + large(size).plain() + SMALL.escaped())
        for _ in range(2):
            check(wire.reply(), size)
            assert (reply := wire.reply()).status == 200
            assert reply.headers["x-request-id"] == "small"


def test_large_bodies_come_in_any_pieces(wire: Wire) -> None:
    order = random.Random(7)
    packet = large(200_000).plain() + SMALL.plain() + large(100_000).escaped() + large(70_000).plain()
    for _ in range(20):
        cuts = sorted(order.sample(range(1, len(packet)), 12))
        wire.send(*(packet[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)))
        check(wire.reply(), 200_000)
        assert wire.reply().headers["x-request-id"] == "small"
        check(wire.reply(), 100_000)
        check(wire.reply(), 70_000)


def test_large_last_request_is_the_last(wire: Wire) -> None:
    wire.send(large(200_000, ("Connection", "close")).plain() + SMALL.plain())
    check(wire.reply(), 200_000)
    assert wire.rest() == b""


def test_large_body_that_is_refused_makes_room_for_the_next(wire: Wire) -> None:
    for _ in range(3):
        wire.send(Ask(VECTOR, b"{" * 200_000).plain() + SMALL.plain())
        assert wire.reply().status == 400
        assert wire.reply().status == 200


def test_large_body_that_does_not_come_is_aborted(impatient: ServerProcess) -> None:
    packet = large(200_000).plain()
    with connected(impatient) as wire:
        wire.send(packet[:100_000], packet[100_000:-1])
        reply = wire.reply()
        assert (reply.status, reply.json()["code"]) == (408, "body_timeout")
        assert wire.rest() == b""
    check(ask(impatient, packet), 200_000)


def test_garbage_behind_a_large_body_is_refused(wire: Wire) -> None:
    wire.send(large(200_000).plain())
    check(wire.reply(), 200_000)
    wire.send(b"\0\1\2\r\n\r\n")
    assert wire.reply().status == 400
    assert wire.rest() == b""


def test_client_that_leaves_within_a_large_body_is_counted(server: ServerProcess) -> None:
    packet = large(200_000, ("X-A", "b")).plain()
    with connected(server) as wire:
        wire.send(packet[:150_000])
    server.wait_for_line(re.compile("request_id=200000 .*status=499"))
    check(ask(server, packet), 200_000)


@pytest.mark.parametrize(("model", "factor"), [("same", 1), ("triple", 3)])
def test_responses_that_nobody_reads_yet_are_kept_as_they_are(
    server: ServerProcess, model: str, factor: int
) -> None:
    size, count = 1_040_000, 8
    with connected(server) as slow, connected(server) as quick:
        packets = [large(size, model=model, start=number).plain() for number in range(count)]
        sending = slow.send_aside(*packets)
        for number in range(100, 120):
            quick.send(large(size, model=model, start=number).plain())
            check(quick.reply(), size, factor, number)
        for number in range(count):
            check(slow.reply(), size, factor, number)
        sending.join()
