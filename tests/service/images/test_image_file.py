import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, _imaging

from engine import Array
from service.images.image_file import IMAGE_FORMATS, load_image, open_image
from service.images.image_header import read_header
from tests.service.codec.payloads import encoded, refused

ROOT = Path(__file__).parents[3]


def read(data: bytes, gray: bool = False) -> Array:
    header = read_header(data, IMAGE_FORMATS, "the image")
    return np.asarray(load_image(open_image(data, header, "the image"), gray, "the image"))


def png(
    width: int, height: int, bits: int, colour_type: int, rows: bytes, *chunks: tuple[bytes, bytes]
) -> bytes:
    """Write a PNG by hand, for kinds that Pillow does not write."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    everything = ((b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    packed = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in everything
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


RED, WHITE = (255, 0, 0), (255, 255, 255)


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("RGB", (1, 2, 3), (1, 2, 3)),
        ("L", 7, (7, 7, 7)),
        ("1", 1, WHITE),
        ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (255, 0, 0, 0), WHITE),
        ("RGBA", (0, 0, 0, 128), (127, 127, 127)),
        ("LA", (0, 0), WHITE),
        ("LA", (9, 255), (9, 9, 9)),
        ("I;16", 0x0700, (7, 7, 7)),
    ],
)
def test_png_modes(mode: str, colour: object, expected: tuple[int, ...]) -> None:
    pixels = read(encoded(Image.new(mode, (2, 3), colour)))  # type: ignore[arg-type]
    assert pixels.shape == (3, 2, 3)
    assert (pixels == expected).all()


def test_palette() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    assert read(encoded(image)).tolist() == [[[255, 0, 0], [0, 0, 255]]]
    assert read(encoded(image, transparency=1)).tolist() == [[[255, 0, 0], [255, 255, 255]]]


def test_colours_that_stand_for_transparency() -> None:
    image = Image.new("RGB", (1, 1), (1, 2, 3))
    assert read(encoded(image, transparency=(1, 2, 3))).tolist() == [[[255, 255, 255]]]
    assert read(encoded(Image.new("L", (1, 1), 9), transparency=9), gray=True).tolist() == [[255]]


def test_sixteen_bits() -> None:
    rows = b"\0" + struct.pack(">4H", 0, 0x1234, 0xFF00, 0xFFFF)
    assert read(png(4, 1, 16, 0, rows), gray=True).tolist() == [[0, 0x12, 0xFF, 0xFF]]
    transparent = png(4, 1, 16, 0, rows, (b"tRNS", struct.pack(">H", 0x1234)))
    assert read(transparent, gray=True).tolist() == [[0, 255, 255, 255]]
    colour = png(1, 1, 16, 2, b"\0" + struct.pack(">3H", 0x0100, 0x2000, 0xFFFF))
    assert read(colour).tolist() == [[[1, 0x20, 255]]]


def test_four_colour_print() -> None:
    pixels = read(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))
    np.testing.assert_allclose(pixels[0, 0], RED, atol=3)


def test_gray_of_colour() -> None:
    assert read(encoded(Image.new("RGB", (1, 1), RED)), gray=True).tolist() == [[76]]


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_first_frame_of_an_animation(kind: str) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], lossless=True)
    assert (read(data) == RED).all()


@pytest.mark.parametrize(
    ("orientation", "turned"),
    [
        (1, lambda a: a),
        (2, np.fliplr),
        (3, lambda a: np.rot90(a, 2)),
        (4, np.flipud),
        (5, np.transpose),
        (6, lambda a: np.rot90(a, -1)),
        (7, lambda a: np.rot90(a, 2).T),
        (8, np.rot90),
        (9, lambda a: a),
    ],
)
def test_orientation(orientation: int, turned: Callable[[Array], Array]) -> None:
    stored = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    data = encoded(Image.fromarray(stored), exif=exif(orientation))
    np.testing.assert_array_equal(read(data, gray=True), turned(stored))


def test_damaged_metadata_do_not_matter() -> None:
    data = encoded(Image.new("L", (1, 1), 9), exif=b"Exif\0\0MM\0*\0\0")
    assert read(data, gray=True).tolist() == [[9]]


def test_large_picture_is_put_on_white_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (37, 10, 4), np.uint8)
    data = encoded(Image.fromarray(pixels))
    whole = read(data)
    for most in (1, 30, 37 * 10 - 1):
        monkeypatch.setattr("service.images.image_file._STRIP_PIXELS", most)
        np.testing.assert_array_equal(read(data), whole)


_MEASURE = """
import resource, sys
from pathlib import Path
from service.config.image_config import ImageConfig
from service.images.image_file import IMAGE_FORMATS, load_image, open_image
from service.images.image_header import read_header
from service.images.resizing import Part, resize
data = Path(sys.argv[1]).read_bytes()
picture = open_image(data, read_header(data, IMAGE_FORMATS, ""), "")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
loaded = load_image(picture, sys.argv[2] == "L", "")
config = ImageConfig.model_validate({"resize_as": sys.argv[3]})
resize(loaded, Part((0, 0, loaded.width, loaded.height), (224, 224)), config)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("library", ["pillow", "torch", "opencv"])
@pytest.mark.parametrize(
    ("mode", "options", "target"),
    [
        ("RGB", {}, "RGB"),
        ("RGB", {}, "L"),
        ("RGB", {"exif": exif(6)}, "RGB"),
        ("RGBA", {"exif": exif(3)}, "RGB"),
        ("P", {"transparency": 0}, "L"),
    ],
)
def test_one_large_picture_is_in_memory_once(
    tmp_path: Path, mode: str, options: dict[str, Any], target: str, library: str
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(encoded(Image.new(mode, (6000, 6000)), **options))
    decoded = 36 if mode == "P" else 144
    command = [sys.executable, "-c", _MEASURE, str(path), target, library]
    printed = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, cwd=ROOT).stdout
    assert int(printed) < decoded + 110  # of the other, another 144


def test_memory_of_large_pictures_goes_back_to_the_system() -> None:
    assert _imaging.get_block_size() > 32 << 20  # from there on glibc maps each block by itself


def test_damaged_pixels() -> None:
    data = bytearray(encoded(Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 9), np.uint8))))
    data[60] ^= 255
    refused(lambda: read(bytes(data)), 400, "invalid_image", "the image is damaged")


def test_other_readers_never_see_the_bytes() -> None:
    target = BytesIO()
    Image.new("L", (2, 2)).save(target, "GIF")
    refused(lambda: read(target.getvalue()), 415, "unsupported_image_format", "expected PNG, JPEG, WEBP, BMP")
