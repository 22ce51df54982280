"""Which connections are closed where there are too many."""

from service.server.connection_limit import Activity, Use, choose_closed

NOW = 1000.0


def peer(use: Use, seconds: float = 10.0, rate: float = 0.0, address: str = "here") -> Activity:
    """Return what a connection does that has been in use for some seconds."""
    return Activity(use, NOW - seconds, rate, address)


def closed(most: int, *peers: Activity) -> list[int]:
    """Return the places of those that are closed for the last of some connections."""
    return sorted(choose_closed(dict(enumerate(peers)), len(peers) - 1, most, NOW))


NEW = Use.HEAD


def test_nobody_is_closed_while_there_is_room() -> None:
    assert closed(3, peer(Use.IDLE), peer(Use.IDLE), peer(NEW, 0.0)) == []


def test_who_has_sent_no_head_goes_first_then_who_lets_a_body_drip_then_the_oldest_idle() -> None:
    silent, dripping = peer(Use.HEAD, 2.0), peer(Use.BODY, 9.0, rate=3.0)
    idle, young = peer(Use.IDLE, 5.0), peer(Use.IDLE, 3.0)
    peers = [peer(Use.BODY, rate=1e6), young, idle, dripping, silent]
    for expected in (4, 3, 2, 1, 0):
        assert closed(len(peers), *peers, peer(NEW, 0.0)) == [expected]
        peers.pop(expected)


def test_the_client_with_most_connections_gives_way() -> None:
    peers = peer(Use.IDLE, 9.0), peer(Use.IDLE, 5.0, address="there"), peer(Use.IDLE, 6.0, address="there")
    assert closed(3, *peers, peer(NEW, 0.0)) == [2]


def test_a_client_with_more_than_its_share_gives_way_even_where_others_do_less() -> None:
    busy = [peer(Use.BODY, rate=1e6, address="there") for _ in range(3)]
    assert closed(4, peer(Use.IDLE), *busy, peer(NEW, 0.0)) == [1]
    busy = [peer(Use.BODY, rate=1e6, address="there") for _ in range(3)]
    assert closed(4, peer(Use.HEAD, 2.0), *busy, peer(NEW, 0.0)) == [0]


def test_the_slowest_body_goes_where_all_send_bodies() -> None:
    peers = peer(Use.BODY, rate=5e5), peer(Use.BODY, rate=5e4), peer(Use.RUN), peer(Use.RESPONSE)
    assert closed(4, *peers, peer(NEW, 0.0)) == [1]


def test_what_is_answered_or_has_just_been_is_left_alone_and_the_newest_goes() -> None:
    assert closed(2, peer(Use.RUN), peer(Use.RESPONSE, 0.2), peer(NEW, 0.0)) == [2]


def test_of_bodies_that_have_just_begun_the_slowest_goes() -> None:
    assert closed(2, peer(Use.BODY, 0.1, rate=1e6), peer(Use.BODY, 0.1, rate=1.0), peer(NEW, 0.0)) == [1]


def test_of_those_that_have_just_come_one_goes() -> None:
    assert closed(64, *[peer(NEW, 0.1 + place / 100) for place in range(64)], peer(NEW, 0.0)) == [63]


def test_one_in_sixteen_goes_at_once() -> None:
    assert len(closed(64, *[peer(Use.BODY) for _ in range(64)], peer(NEW, 0.0))) == 4
