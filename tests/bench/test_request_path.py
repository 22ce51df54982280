"""The way of a request stays short enough to be read."""

import asyncio

from tests.bench.request_path import count

MAX_CALLS = 300
MAX_FILES = 45


def test_a_warm_request_takes_few_calls_in_few_files() -> None:
    calls = asyncio.run(count())
    assert calls.total() <= MAX_CALLS
    assert len({name for name, _ in calls}) <= MAX_FILES
