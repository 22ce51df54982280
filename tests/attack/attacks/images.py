"""Small images that are much work to decode."""

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

from tests.attack.attack import Attack, Target
from tests.attack.attacks.requests import ask_in_turn, post

PATH = "/infer?model=digits&trace=off"
PIXELS = 64_000_000
_NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8))


def _encoded(image: Image.Image, name: str) -> bytes:
    target = io.BytesIO()
    image.save(target, name, progressive=name == "JPEG")
    return target.getvalue()


def _packed_bitmap() -> bytes:
    """Return a BMP of one row that is packed by run lengths, as small as it can be."""
    info = struct.pack("<IiiHHIIiiII", 40, PIXELS, 1, 1, 8, 1, 0, 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 1078, 0, 0, 1078) + info + bytes(1024)


def _scans(count: int) -> bytes:
    """Return a progressive JPEG of so many scans of 36 megapixels."""
    data = bytearray(_encoded(_NOISE, "JPEG"))
    frame = data.index(b"\xff\xc2")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 6000, 6000)
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\1\1\0\1\1\0" + bytes(80)
    return bytes(data[:-2]) + scan * count + b"\xff\xd9"


def _chunks(count: int) -> bytes:
    data = _encoded(_NOISE, "PNG")
    chunk = bytes(4) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    return data[:33] + chunk * count + data[33:]


def _segments(count: int) -> bytes:
    data = _encoded(_NOISE, "JPEG")
    return data[:2] + b"\xff\xe5\0\2" * count + data[2:]


def _bodies(count: int) -> Iterator[bytes]:
    side = int(PIXELS**0.5)
    kinds = (
        _packed_bitmap(),
        _scans(10_000),
        _chunks(100_000 * min(count, 50)),
        _segments(300_000 * min(count, 50)),
        _encoded(Image.new("L", (side, side)), "PNG"),
        _encoded(Image.new("RGB", (side, side)), "WEBP"),
        _encoded(Image.new("L", (side, side)), "JPEG"),
    )
    for index in range(count):
        yield kinds[index % len(kinds)]


def run(target: Target, count: int) -> None:
    """Send `count` images, each of another kind."""
    ask_in_turn(target, (post(PATH, body, "application/octet-stream") for body in _bodies(count)))


IMAGES = Attack("images that are much work to decode", "images", run, (4, 28, 70))
