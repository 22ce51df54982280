"""Which connections are closed where there are too many."""

from dataclasses import dataclass

import pytest

from service.server.connection_limit import Activity, ConnectionLimit, Use

pytestmark = pytest.mark.anyio


@dataclass(eq=False)
class Peer:
    """A connection that has been in use for some seconds."""

    use: Use | None
    seconds: float = 10.0
    rate: float = 0.0
    address: str = "here"
    is_closed: bool = False

    def activity(self, now: float) -> Activity | None:
        return None if self.use is None else Activity(self.use, now - self.seconds, self.rate)

    def abort(self) -> None:
        self.is_closed = True


def closed(most: int, *peers: Peer) -> list[int]:
    """Admit the last of some connections; return the places of those that are closed for it."""
    ConnectionLimit(most).admit(peers, peers[-1])
    return [place for place, peer in enumerate(peers) if peer.is_closed]


NEW = Use.HEAD


async def test_nobody_is_closed_while_there_is_room() -> None:
    assert closed(3, Peer(Use.IDLE), Peer(Use.IDLE), Peer(NEW, 0.0)) == []


async def test_who_has_sent_no_head_goes_first_then_who_lets_a_body_drip_then_the_oldest_idle() -> None:
    silent, dripping = Peer(Use.HEAD, 2.0), Peer(Use.BODY, 9.0, rate=3.0)
    idle, young = Peer(Use.IDLE, 5.0), Peer(Use.IDLE, 3.0)
    peers = [Peer(Use.BODY, rate=1e6), young, idle, dripping, silent]
    for expected in (4, 3, 2, 1, 0):
        assert closed(len(peers), *peers, Peer(NEW, 0.0)) == [expected]
        peers.pop(expected)


async def test_the_client_with_most_connections_gives_way() -> None:
    peers = Peer(Use.IDLE, 9.0), Peer(Use.IDLE, 5.0, address="there"), Peer(Use.IDLE, 6.0, address="there")
    assert closed(3, *peers, Peer(NEW, 0.0)) == [2]


async def test_a_client_with_more_than_its_share_gives_way_even_where_others_do_less() -> None:
    busy = [Peer(Use.BODY, rate=1e6, address="there") for _ in range(3)]
    assert closed(4, Peer(Use.IDLE), *busy, Peer(NEW, 0.0)) == [1]
    busy = [Peer(Use.BODY, rate=1e6, address="there") for _ in range(3)]
    assert closed(4, Peer(Use.HEAD, 2.0), *busy, Peer(NEW, 0.0)) == [0]


async def test_the_slowest_body_goes_where_all_send_bodies() -> None:
    peers = Peer(Use.BODY, rate=5e5), Peer(Use.BODY, rate=5e4), Peer(None), Peer(Use.RESPONSE)
    assert closed(4, *peers, Peer(NEW, 0.0)) == [1]


async def test_what_is_answered_or_has_just_been_is_left_alone_and_the_newest_goes() -> None:
    assert closed(2, Peer(None), Peer(Use.RESPONSE, 0.2), Peer(NEW, 0.0)) == [2]


async def test_of_bodies_that_have_just_begun_the_slowest_goes() -> None:
    assert closed(2, Peer(Use.BODY, 0.1, rate=1e6), Peer(Use.BODY, 0.1, rate=1.0), Peer(NEW, 0.0)) == [1]


async def test_of_those_that_have_just_come_one_goes() -> None:
    assert closed(64, *[Peer(NEW, 0.1 + place / 100) for place in range(64)], Peer(NEW, 0.0)) == [63]


async def test_one_in_sixteen_goes_at_once() -> None:
    assert len(closed(64, *[Peer(Use.BODY) for _ in range(64)], Peer(NEW, 0.0))) == 4
