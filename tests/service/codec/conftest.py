from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.decoding.decoder import Decoders

Apart = Callable[[Callable[[], Any]], Any]
"""Calls a function on a thread that has a decoder."""


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    decoders = Decoders()
    with ThreadPoolExecutor(1, initializer=decoders.open) as threads:
        yield lambda function: threads.submit(function).result()
        decoders.close()
