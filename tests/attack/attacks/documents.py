"""JSON for `/v2` that is small when it is sent, and much work to read."""

import gzip

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post

PATH = "/v2/models/digits/infer"
UNPACKED = 64 << 20
"""Bytes of a document once it is unpacked: as many as a body may have."""
_FILLINGS = (b"0,", b"[],", b"{},", b'"",', b"[0],", b'{"data":[0]},')


def _document(filling: bytes) -> bytes:
    lead, tail = b'{"inputs":[{"name":"0","shape":[1],"datatype":"FP32","data":[', b"0]}]}"
    return lead + filling * ((UNPACKED - len(lead) - len(tail)) // len(filling)) + tail


def unpack(target: Target, count: int) -> None:
    """Send `count` compressed documents, each of another kind of values."""
    packed = [gzip.compress(_document(filling), 9) for filling in _FILLINGS[:count]]
    bodies = (packed[index % len(packed)] for index in range(count))
    ask_in_turn(target, (post(PATH, body, "application/json", "Content-Encoding: gzip") for body in bodies))


def name_outputs(target: Target, count: int) -> None:
    """Name so many outputs in each of three requests."""
    for output in (b"{}", b'"a"', b'{"name":"3"}'):
        body = b'{"inputs":[],"outputs":[' + b",".join([output] * count) + b"]}"
        ask_in_turn(target, [post(PATH, body, "application/json")])


COMPRESSED_DOCUMENTS = Attack("gzip JSON that unpacks to 64 MB", "requests", unpack, (2, 24, 60))
NAMED_OUTPUTS = Attack(
    "requests that name many outputs", "outputs", name_outputs, (50_000, 1_000_000, 4_000_000)
)
