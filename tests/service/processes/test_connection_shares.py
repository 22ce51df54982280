import os
from collections.abc import Iterator

import pytest

from service.processes.connection_shares import ConnectionShares, make_shares_memory, open_shares, withdraw

SLOTS = 3


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = make_shares_memory(SLOTS)
    yield made
    os.close(made)


def fill(shares: ConnectionShares, number: int) -> None:
    for _ in range(number):
        shares.add()


def test_process_alone_has_no_bound(descriptor: int) -> None:
    assert ConnectionShares().room() is None
    shares = open_shares(descriptor, SLOTS, 1)
    shares.begin()
    fill(shares, 100)
    assert shares.room() is None


@pytest.mark.parametrize(
    ("own", "others", "room"),
    [
        (0, [0, 0], 1),
        (1, [0, 0], 0),
        (3, [9, 2], 0),
        (3, [9, 3], 1),
        (0, [100, 100], 126),  # an even share and a quarter
        (126, [100, 100], 0),
        (200, [100, 100], 0),
    ],
)
def test_room_is_up_to_one_more_than_the_fewest_of_the_others(
    descriptor: int, own: int, others: list[int], room: int
) -> None:
    for slot, number in enumerate([own, *others]):
        shares = open_shares(descriptor, SLOTS, slot)
        fill(shares, number)  # counted before they are shown to the others
        shares.begin()
    shares = open_shares(descriptor, SLOTS, 0)
    fill(shares, own)
    assert shares.room() == room
    assert shares.room(beginning=1) == max(room - 1, 0)


def test_process_that_takes_none_or_has_ended_counts_no_more(descriptor: int) -> None:
    first, second, third = (open_shares(descriptor, SLOTS, slot) for slot in range(SLOTS))
    for shares in (first, second, third):
        shares.begin()
    fill(first, 5)
    fill(second, 5)
    assert first.room() == 0
    third.end()
    third.add()  # a connection that was being accepted
    assert first.room() == 2
    withdraw(descriptor, 1)
    assert first.room() is None
    first.remove()
    second.begin()
    assert (first.room(), second.room()) == (3, 1)
