"""Requests with large bodies, for models called `same`, `triple` and `vector`."""

import numpy as np

from engine import Array
from tests.service.server.wire.cases import GOOD, VECTOR
from tests.service.server.wire.wire import Ask, Reply
from tests.service.v2.bodies import binary_body, binary_input

SMALL = Ask(VECTOR, GOOD, (("X-Request-ID", "small"),))


def large(size: int, *headers: tuple[str, str], model: str = "same", start: int = 0) -> Ask:
    """Return a request for about as many bytes as it sends: numbers that count from `start`."""
    array = _numbers(size, start)
    body, length = binary_body(
        {"inputs": [binary_input("in", array)], "parameters": {"binary_data_output": True}}, array
    )
    fields = (("Inference-Header-Content-Length", str(length)), ("X-Request-ID", str(size)), *headers)
    return Ask(f"/v2/models/{model}/infer", body, fields)


def check(reply: Reply, size: int, factor: int = 1, start: int = 0) -> None:
    """Check that all numbers came back."""
    assert reply.status == 200, reply.body
    assert reply.headers["x-request-id"] == str(size)
    length = int(reply.headers["inference-header-content-length"])
    given = np.frombuffer(reply.body[length:], np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(given, _numbers(size, start) * factor)


def _numbers(size: int, start: int) -> Array:
    return np.arange(start, start + size // 8 * 2, dtype=np.float32).reshape(-1, 2)
