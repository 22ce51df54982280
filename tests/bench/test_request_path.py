"""The way of a request stays short enough to be read."""

import asyncio

from tests.bench.request_path import count

MOST_CALLS = 300
MOST_FILES = 45


def test_a_warm_request_takes_few_calls_in_few_files() -> None:
    calls = asyncio.run(count())
    assert calls.total() <= MOST_CALLS
    assert len({name for name, _ in calls}) <= MOST_FILES
