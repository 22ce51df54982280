"""Requests with large bodies, for models called `same` and `vector`."""

import numpy as np

from tests.service.direct.cases import GOOD, VECTOR
from tests.service.direct.wire import Ask, Reply
from tests.service.v2.bodies import binary_body, binary_input

SMALL = Ask(VECTOR, GOOD, (("X-Request-ID", "small"),))


def large(size: int, *headers: tuple[str, str]) -> Ask:
    """Return a request for as many bytes as it sends, at most a megabyte."""
    array = np.arange(size // 8 * 2, dtype=np.float32).reshape(-1, 2)
    body, length = binary_body(
        {"inputs": [binary_input("in", array)], "parameters": {"binary_data_output": True}}, array
    )
    fields = (("Inference-Header-Content-Length", str(length)), ("X-Request-ID", str(size)), *headers)
    return Ask("/v2/models/same/infer", body, fields)


def check(reply: Reply, size: int) -> None:
    assert reply.status == 200, reply.body
    assert reply.headers["x-request-id"] == str(size)
    length = int(reply.headers["inference-header-content-length"])
    np.testing.assert_array_equal(
        np.frombuffer(reply.body[length:], np.float32), np.arange(size // 8 * 2, dtype=np.float32)
    )
