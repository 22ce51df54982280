from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.decoding.decoder import Decoders

Apart = Callable[[Callable[[], Any]], Any]
"""Calls a function that has a decoder."""


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    decoders = Decoders()
    yield decoders.call
    decoders.close()
