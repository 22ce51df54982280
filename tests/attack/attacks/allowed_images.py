"""Images as large as they may be, several at once."""

import io
import threading
from itertools import cycle, islice

from PIL import Image

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post

PATH = "/infer?model=digits&trace=off"
AT_ONCE = 4
_KINDS = (("PNG", 7900), ("WEBP", 3500))
"""Formats, and the sides of squares that come close to the limit of pixels."""


def _request(kind: str, side: int) -> bytes:
    encoded = io.BytesIO()
    Image.new("RGB", (side, side), (200, 30, 60)).save(encoded, kind)
    return post(PATH, encoded.getvalue(), "application/octet-stream")


def run(target: Target, count: int) -> None:
    """Send `count` images on each of four connections, PNG and WebP alternately."""
    kinds = _KINDS if count > 1 else (("PNG", 500),)
    requests = [_request(kind, side) for kind, side in kinds]
    senders = [
        threading.Thread(target=ask_in_turn, args=(target, islice(cycle(requests), count)))
        for _ in range(AT_ONCE)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


ALLOWED_IMAGES = Attack(
    "the largest images that are allowed, 4 at once", "images on each of 4", run, (1, 6, 20)
)
