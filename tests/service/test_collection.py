"""The collector of garbage while a server is imported and while it serves."""

import gc
from collections.abc import Iterator

import pytest

from service.collection import collect_rarely, without_collection


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_nothing_is_collected_meanwhile_and_what_was_made_is_not_looked_at_later() -> None:
    kept = gc.get_freeze_count()
    with without_collection():
        assert not gc.isenabled()
        made: list[list[int]] = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= kept + len(made)


def test_it_looks_for_cycles_only_where_many_objects_were_made() -> None:
    _, second, third = gc.get_threshold()
    collect_rarely()
    assert gc.get_threshold() == (10_000, second, third)
