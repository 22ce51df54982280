import struct
import zlib
from itertools import product
from typing import Any

import numpy as np
import pytest
from PIL import Image

from service.errors import ServiceError
from service.images import image_header
from service.images.image_file import IMAGE_FORMATS
from service.images.image_header import MAX_ASPECT, MAX_EXIF_SEGMENTS, MAX_SCANS, ImageHeader, read_header
from service.images.preparation import open_images
from tests.cases import check_each
from tests.service.codec.payloads import encoded

EMPTY_PNG_CHUNK = bytes(4) + b"teSt" + struct.pack(">I", zlib.crc32(b"teSt"))
EMPTY_IDAT = bytes(4) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
EMPTY_SEGMENT = b"\xff\xe5\0\2"
NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 30, 3), np.uint8))
PNG, JPEG, WEBP, BMP = (encoded(NOISE, name) for name in IMAGE_FORMATS)


def header_of(data: bytes, formats: tuple[str, ...] = IMAGE_FORMATS) -> ImageHeader:
    return read_header(data, formats, "the image")


def refused(data: bytes, status: int, code: str, text: str = "") -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        header_of(data)
    assert (caught.value.status, caught.value.code) == (status, code), caught.value.message
    assert text in caught.value.message
    return caught.value


def test_sizes_are_those_that_pillow_finds() -> None:
    def check(case: tuple[str, str]) -> None:
        name, mode = case
        try:
            data = encoded(Image.new(mode, (7, 5)), name)
        except OSError:
            return  # the format has no such images
        header = header_of(data)
        assert (header.format, header.width, header.height) == (name, 7, 5)
        assert open_images([data], 1000)[0].size == (7, 5)

    check_each(product(IMAGE_FORMATS, ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16"]), check)


@pytest.mark.parametrize(
    ("name", "mode", "options", "weight"),
    [
        ("PNG", "RGB", {}, 1),
        ("PNG", "P", {}, 1),
        ("PNG", "RGBA", {}, 2),
        ("PNG", "LA", {}, 2),
        ("PNG", "I;16", {}, 2),
        ("JPEG", "RGB", {}, 1),
        ("JPEG", "L", {}, 1),
        ("JPEG", "RGB", {"progressive": True}, 2),
        ("JPEG", "CMYK", {}, 2),
        ("WEBP", "RGB", {}, 5),
        ("WEBP", "RGB", {"lossless": True}, 5),
        ("WEBP", "RGBA", {}, 5),
        ("BMP", "RGB", {}, 1),
        ("BMP", "RGBA", {}, 2),
    ],
)
def test_kinds_that_take_more_memory_count_more(
    name: str, mode: str, options: dict[str, Any], weight: int
) -> None:
    data = encoded(Image.new(mode, (10, 10)), name, **options)
    assert header_of(data).weighted_pixels == 100 * weight
    assert len(open_images([data], 100 * weight)) == 1
    with pytest.raises(ServiceError) as caught:
        open_images([data], 100 * weight - 1)
    assert (caught.value.status, caught.value.code) == (413, "image_too_large")
    assert caught.value.details == {"sizes": [[10, 10]], "limit": 100 * weight - 1}


def before_pixels(data: bytes, added: bytes) -> bytes:
    """Return an image with something put behind its first part."""
    position = data.index(b"IDAT") - 4 if data.startswith(b"\x89PNG") else 2
    return data[:position] + added + data[position:]


def scans(count: int) -> bytes:
    """Return a progressive JPEG of as many scans, each without data."""
    data = encoded(NOISE, "JPEG", progressive=True)
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\1\1\0\1\1\0"
    return data[:-2] + scan * count + data[-2:]


@pytest.mark.parametrize(
    ("data", "unit"),
    [
        (before_pixels(PNG, EMPTY_PNG_CHUNK * 5000), "chunks"),
        (before_pixels(PNG, EMPTY_IDAT * 5000), "chunks"),
        (before_pixels(JPEG, EMPTY_SEGMENT * 5000), "segments"),
        (before_pixels(JPEG, b"\xff" * 5000), "segments"),
        (before_pixels(JPEG, b"\xff\0" * 5000), "segments"),
        (before_pixels(JPEG, EMPTY_SEGMENT + b"\x01" * 5000), "bytes between its segments"),
        (WEBP + b"EXIF\0\0\0\0" * 5000, "chunks"),
        (WEBP + (b"ANMF" + bytes(20)) * 5000, "chunks"),
        (scans(MAX_SCANS), "scans"),
    ],
)
def test_images_of_too_many_parts_are_refused_before_pillow_sees_them(
    data: bytes, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ServiceError) as caught:
        open_images([data], 1 << 30)
    assert (caught.value.status, caught.value.code) == (413, "image_too_large")
    assert caught.value.details["unit"] == unit


@pytest.mark.parametrize(
    "data",
    [
        before_pixels(PNG, EMPTY_PNG_CHUNK * 500),
        before_pixels(JPEG, EMPTY_SEGMENT * 500),
        before_pixels(JPEG, b"\xff" * 500),
        before_pixels(JPEG, EMPTY_SEGMENT + b"\x01" * 500),
        encoded(NOISE, "JPEG", progressive=True),
        encoded(NOISE, "JPEG", restart_marker_blocks=1),
        encoded(NOISE, "JPEG", comment=b"\xff\xda" * 200),
        encoded(NOISE, "WEBP", save_all=True, append_images=[NOISE] * 20),
        encoded(NOISE, "PNG", save_all=True, append_images=[NOISE] * 20),
        JPEG + b"junk" * 3000,
    ],
)
def test_unusual_images_are_taken(data: bytes) -> None:
    assert open_images([data], 1 << 20)[0].size == (30, 40)


def test_markers_that_lie_across_the_end_of_a_window_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(NOISE, "JPEG", progressive=True)
    seen = [kind for kind, _ in image_header._jpeg_segments(data)]
    assert seen.count(image_header._START_OF_SCAN) > 5
    for window in (2, 3, 7):
        monkeypatch.setattr(image_header, "_WINDOW", window)
        assert [kind for kind, _ in image_header._jpeg_segments(data)] == seen


def bitmap(width: int, height: int, bits: int, compression: int, rest: bytes = b"") -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(rest), 0, 0, 54) + info + rest


@pytest.mark.parametrize("compression", [1, 2, 4, 5, 11])
def test_compressed_bitmaps_are_refused(compression: int) -> None:
    refused(bitmap(64_000_000, 1, 8, compression, bytes(1100)), 400, "invalid_image", "compressed BMP")


def test_a_bitmap_without_its_pixels_is_refused() -> None:
    refused(bitmap(8000, 8000, 24, 0, bytes(1100)), 400, "invalid_image", "its pixels take 192000000")


def test_bitmaps_upside_down() -> None:
    assert header_of(bitmap(2, -3, 24, 0, bytes(24))).height == 3


@pytest.mark.parametrize("size", [(MAX_ASPECT + 1, 1), (1, MAX_ASPECT + 1)])
def test_extreme_ratios_of_sides_are_refused(size: tuple[int, int]) -> None:
    refused(encoded(Image.new("1", size)), 413, "image_too_large", f"1 : {MAX_ASPECT}")


@pytest.mark.parametrize("data", [PNG, JPEG, WEBP, BMP])
def test_cut_headers_are_refused(data: bytes) -> None:
    for length in range(16):
        refused(data[:length], 400, "invalid_image")


def test_an_image_of_two_sizes_is_refused() -> None:
    ihdr = encoded(Image.new("RGB", (2000, 2000)))[8:33]
    with pytest.raises(ServiceError, match="several sizes"):
        open_images([before_pixels(PNG, ihdr)], 10_000)


def test_formats_that_are_not_taken() -> None:
    with pytest.raises(ServiceError) as caught:
        open_images([WEBP], 1 << 20, ("png", "jpeg"))
    assert (caught.value.status, caught.value.code) == (415, "unsupported_image_format")
    assert caught.value.details == {"format": "WEBP", "accepted": ["PNG", "JPEG"]}
    for kind in ("GIF", "TIFF"):
        message = refused(encoded(NOISE, kind), 415, "unsupported_image_format").message
        assert message.endswith(f"is {kind}, which is not supported; expected PNG, JPEG, WEBP, BMP")


def test_exif_is_in_few_segments() -> None:
    sound = encoded(Image.new("L", (8, 8)), "JPEG")
    segment = b"\xff\xe1" + struct.pack(">H", 10) + b"Exif\0\0II"
    others = b"\xff\xe1" + struct.pack(">H", 10) + b"http://n"
    few = sound[:2] + segment * MAX_EXIF_SEGMENTS + others * 40 + sound[2:]
    assert header_of(few).width == 8
    many = sound[:2] + segment * (MAX_EXIF_SEGMENTS + 1) + sound[2:]
    refused(many, 413, "image_too_large", "17 segments of Exif")
