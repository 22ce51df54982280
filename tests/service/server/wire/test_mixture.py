"""Requests of all kinds, one after the other on one connection, cut anywhere; and clients that leave anywhere."""

import random
from collections.abc import Callable, Iterator

import pytest

from tests.service.models import VECTOR as VECTOR_MODEL
from tests.service.models import add_model
from tests.service.server.process import ServerProcess
from tests.service.server.wire.cases import GOOD, VECTOR
from tests.service.server.wire.large import large
from tests.service.server.wire.wire import Ask, ask, connected
from tests.service.v2.models import SAME

V2 = "/v2/models/same/infer"
KINDS: list[tuple[Ask, int]] = [
    (Ask(VECTOR, GOOD), 200),
    (Ask(VECTOR, b"{"), 400),
    (Ask(VECTOR), 400),
    (Ask("/infer?model=none", GOOD), 404),
    (Ask(V2, b"{"), 400),
    (Ask(V2, b"{" * 150_000), 400),
    (large(100), 200),
    (large(100_000), 200),
    (large(300_000), 200),
]
FORMS: list[Callable[[Ask], bytes]] = [Ask.plain, Ask.plain, Ask.escaped, Ask.chunked]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR_MODEL)
    add_model(models, "same", SAME.format(dtype="f32"))
    with ServerProcess("--models", str(models), "--no-warm-up", "--queue-size", "1000") as started:
        yield started
        started.terminate()
        assert started.exit_code() == 0
    check_log(started)


def check_log(server: ServerProcess) -> None:
    assert "ERROR" not in (log := "\n".join(server.lines)), log


def mixture(order: random.Random, most: int = 6) -> tuple[list[bytes], list[int]]:
    """Return packets of some requests, and the statuses of their responses."""
    chosen = [order.choice(KINDS) for _ in range(order.randint(1, most))]
    sent = b"".join(order.choice(FORMS)(case) for case, _ in chosen)
    cuts = sorted(order.randrange(len(sent)) for _ in range(order.randint(0, 6)))
    packets = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    return packets, [status for _, status in chosen]


def test_all_are_answered_in_order(server: ServerProcess) -> None:
    order = random.Random(11)
    with connected(server) as wire:
        for _ in range(150):
            packets, statuses = mixture(order)
            sending = wire.send_aside(*packets)
            assert [wire.reply().status for _ in statuses] == statuses
            sending.join()
    check_log(server)


@pytest.mark.parametrize("most", [1, 6])
def test_nothing_is_left_of_clients_that_leave(server: ServerProcess, most: int) -> None:
    order = random.Random(13)
    for _ in range(150):
        packets, _ = mixture(order, most)
        sent = b"".join(packets)
        with connected(server) as wire:
            wire.send(sent[: order.randrange(len(sent))])
    assert ask(server, Ask(VECTOR, GOOD).plain()).status == 200
    check_log(server)
