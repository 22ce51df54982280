"""Requests to recognise many digits at once."""

import io

import numpy as np

from tests.attack.wire import request_head


def digits_request(rows: int, query: str = "trace=off", accept: str = "*/*") -> bytes:
    """Return a request to `/infer` for so many rows."""
    body = io.BytesIO()
    np.save(body, np.random.default_rng(rows).random((rows, 1, 28, 28), np.float32))
    head = request_head(f"/infer?model=digits&{query}", body.tell())
    return head.replace(b"\r\n", f"\r\nAccept: {accept}\r\n".encode(), 1) + body.getvalue()
