"""Which connections are closed where there are too many, or where their clients leave too much unread."""

import asyncio
from dataclasses import dataclass
from math import inf
from typing import cast

import pytest

from service.server.connection import GRACE_SECONDS, Connection
from service.server.connections import DRIP_RATE, Connections

pytestmark = pytest.mark.anyio


@dataclass(eq=False)
class Peer:
    """A connection, as far as it is judged: by default one that is idle.

    Attributes:
        seconds: how long it has done what it does.
        rate: its pace after the first second; None where that does not matter.
        unsent: bytes that it has yet to read.
    """

    seconds: float = 10.0
    rate: float | None = None
    address: str = "here"
    is_running: bool = False
    unsent: int = 0
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.since = asyncio.get_running_loop().time() - self.seconds

    def pace(self, now: float) -> float:
        if self.rate is None:
            return DRIP_RATE
        return self.rate if now - self.since >= GRACE_SECONDS else inf

    @property
    def is_unread(self) -> bool:
        return self.unsent > 0

    def unsent_bytes(self) -> int:
        return self.unsent

    def check(self, now: float) -> None:
        """Wait for the client."""

    def abort(self) -> None:
        self.is_closed = True

    def cut_off(self, why: str) -> None:
        del why
        self.abort()


def new(seconds: float = 0.0) -> Peer:
    """Return a client that has sent nothing yet."""
    return Peer(seconds, rate=0.0)


def add(shared: Connections, peer: Peer) -> None:
    shared.add(cast(Connection, peer))


def closed(most: int, *peers: Peer) -> list[int]:
    """Return the places of those that are closed for the last of some connections."""
    shared = Connections(most, 0)
    for peer in peers:
        add(shared, peer)
    return [place for place, peer in enumerate(peers) if peer.is_closed]


async def test_nobody_is_closed_while_there_is_room() -> None:
    assert closed(3, Peer(), Peer(), new()) == []


async def test_who_has_sent_no_head_goes_first_then_who_lets_a_body_drip_then_the_oldest_idle() -> None:
    for expected in (4, 3, 2, 1, 0):
        silent, dripping = new(2.0), Peer(9.0, rate=3.0)
        peers = [Peer(rate=1e6), Peer(3.0), Peer(5.0), dripping, silent][: expected + 1]
        assert closed(len(peers), *peers, new()) == [expected]


async def test_the_client_with_most_connections_gives_way() -> None:
    assert closed(3, Peer(9.0), Peer(5.0, address="there"), Peer(6.0, address="there"), new()) == [2]


async def test_a_client_with_more_than_its_share_gives_way_even_where_others_do_less() -> None:
    busy = [Peer(11.0 - place, rate=1e6, address="there") for place in range(3)]
    assert closed(4, Peer(), *busy, new()) == [1]
    busy = [Peer(rate=1e6, address="there") for _ in range(3)]
    assert closed(4, new(2.0), *busy, new()) == [0]


async def test_the_slowest_body_goes_where_all_send_bodies() -> None:
    peers = Peer(rate=5e5), Peer(rate=5e4), Peer(is_running=True), Peer(rate=6e4)
    assert closed(4, *peers, new()) == [1]


async def test_what_runs_is_left_alone_and_the_newest_goes() -> None:
    assert closed(2, Peer(is_running=True), Peer(is_running=True), new()) == [2]


async def test_of_those_that_have_just_come_the_oldest_goes() -> None:
    assert closed(64, *[new(0.1 + place / 100) for place in range(64)], new()) == [63]
    assert closed(2, Peer(is_running=True), Peer(0.5, rate=1e6), new()) == [1]


async def test_one_in_sixteen_goes_at_once() -> None:
    assert len(closed(64, *[Peer(rate=1e6) for _ in range(64)], new())) == 4


async def test_those_that_are_closed_are_counted_no_more() -> None:
    shared, old = Connections(2, 0), [Peer(9.0), Peer(8.0), Peer(7.0)]
    for peer in (*old, new()):
        add(shared, peer)
    assert [peer.is_closed for peer in old] == [True, True, False]


async def test_the_slowest_readers_make_room() -> None:
    peers = [Peer(2.0, rate, unsent=40_000) for rate in (500.0, 0.0)]
    fresh = [Peer(0.0, 0.0, unsent=40_000) for _ in range(2)]
    shared = Connections(10, 100_000)
    now = asyncio.get_running_loop().time
    for peer in (*peers, fresh[0]):
        add(shared, peer)
    shared.limit_unsent(now())
    assert [peer.is_closed for peer in peers] == [False, True]
    shared.remove(cast(Connection, peers[1]))
    add(shared, fresh[1])
    shared.limit_unsent(now())
    assert [peer.is_closed for peer in (*peers, *fresh)] == [True, True, False, False]


async def test_who_has_just_begun_and_who_is_alone_may_exceed_the_limit() -> None:
    shared = Connections(10, 10)
    now = asyncio.get_running_loop().time()
    readers = [Peer(place / 100, 0.0, unsent=40_000) for place in (2, 1)]
    for reader in readers:
        add(shared, reader)
    shared.limit_unsent(now)
    assert not any(reader.is_closed for reader in readers)
    shared.limit_unsent(now + GRACE_SECONDS)
    assert [reader.is_closed for reader in readers] == [True, False]
    shared.remove(cast(Connection, readers[0]))
    shared.limit_unsent(now + GRACE_SECONDS)
    assert not readers[1].is_closed
