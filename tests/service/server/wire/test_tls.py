"""The same by TLS, where what comes is in other pieces than what was sent."""

import ssl
from collections.abc import Iterator

import pytest
import trustme

from tests.service.models import VECTOR, add_model
from tests.service.server.process import ServerProcess
from tests.service.server.wire.large import SMALL, check, large
from tests.service.server.wire.wire import Wire, connected
from tests.service.v2.models import SAME

SIZE = 300_000


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("tls")
    add_model(folder / "models", "vector", VECTOR)
    add_model(folder / "models", "same", SAME.format(dtype="f32"))
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server")
    flags = ("--no-warm-up", "--timeout", "3", "--ssl-certfile", str(folder / "server"))
    with ServerProcess("--models", str(folder / "models"), *flags) as started:
        yield started
        started.terminate()
        assert started.exit_code() == 0


@pytest.fixture
def wire(server: ServerProcess, authority: trustme.CA) -> Iterator[Wire]:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with connected(server, context) as created:
        yield created
    assert not [line for line in server.lines if "ERROR" in line or "Invalid HTTP" in line]


def test_requests_of_all_sizes_are_answered_in_order(wire: Wire) -> None:
    for _ in range(3):
        wire.send(large(SIZE).plain() + SMALL.plain() + SMALL.escaped() + large(SIZE).plain() + SMALL.plain())
        check(wire.reply(), SIZE)
        assert [wire.reply().status for _ in range(2)] == [200, 200]
        check(wire.reply(), SIZE)
        assert wire.reply().status == 200


def test_head_and_body_may_come_each_by_itself(wire: Wire) -> None:
    for size in (SIZE, 100, SIZE):
        head, _, body = large(size).plain().partition(b"\r\n\r\n")
        wire.send(head + b"\r\n\r\n", body)
        check(wire.reply(), size)


@pytest.mark.parametrize("size", [100, SIZE])
def test_late_body_is_reported_once(wire: Wire, size: int) -> None:
    packet = large(size).plain()
    wire.send(packet[:-9])
    assert wire.reply().status == 408
    wire.send(packet[-9:])
    assert wire.rest() == b""


def test_last_request_is_the_last(wire: Wire) -> None:
    wire.send(large(SIZE, ("Connection", "close")).plain() + SMALL.plain())
    check(wire.reply(), SIZE)
    assert wire.rest() == b""
