"""Bodies of the largest size that is taken, of each kind that is read on the server."""

import io
from collections.abc import Iterator
from itertools import islice, repeat

import numpy as np

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post

PATH = "/infer?model=digits&trace=off"
MAX_BYTES = 60_000_000
MAX_JSON = 16_000_000
"""The same of JSON."""
SHORT_BYTES = 1_000_000
"""Bytes of each body where an attack has few of them."""
_FEW = 9
_JSON = "application/json"
_FILLINGS = (b"0.25,", b"[0,1],", b'{"a":1},', b'"\\n",', b"[[[0]]],", b'"data":[1,2],')


def refuse(target: Target, count: int) -> None:
    """Send `count` bodies that are refused by their first bytes, once they are there.

    What others notice of these is what it takes to receive bodies, and what the attacker itself takes of the machine.
    """
    body = b"\x93NUMPY" + bytes(_size(count))
    ask_in_turn(target, (post(PATH, body, "application/x-npy") for _ in range(count)))


def read(target: Target, count: int) -> None:
    """Send `count` bodies, each of another kind."""
    rounds = (
        _requests(size) for size in repeat(_size(count))
    )  # made again each time: together they are large
    ask_in_turn(target, islice((request for one in rounds for request in one), count))


def _size(count: int) -> int:
    return MAX_BYTES if count > _FEW else SHORT_BYTES


def _requests(size: int) -> Iterator[bytes]:
    """Yield JSON, with and without an array of numbers before the rest, a form with JSON in it, and a packed array."""
    json_size = min(size, MAX_JSON)
    for filling in _FILLINGS:
        yield post(PATH, b'{"inputs":[{"data":[' + filling * (json_size // len(filling)) + b"0]}]}", _JSON)
    numbers = b'{"inputs":[{"data":[%b0]},' % (b"1," * 5000)
    yield post(PATH, numbers + b'{"a":1},' * (json_size // 8) + b"0]}", _JSON)
    part = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n'
    form = part + b"\r\n--boun" * (size // 8) + b"\r\n--bound--\r\n"
    yield post(PATH, form, "multipart/form-data; boundary=bound")
    packed = io.BytesIO()
    np.savez_compressed(packed, np.zeros(size // 4, np.float32))
    yield post(PATH, packed.getvalue(), "application/x-npz")


REFUSED_BODIES = Attack("bodies of 60 MB that are refused once they are there", "bodies", refuse, (3, 24, 60))
LARGE_BODIES = Attack("JSON of 16 MB, forms and archives of 60 MB", "bodies", read, (9, 27, 90))
