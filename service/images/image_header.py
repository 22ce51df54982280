"""Reads the headers of encoded images without decoding them, and refuses those that cost more than they show.

What a decoder does with an image is decided by its header and by how many parts it has, not by the size of the file: a
kilobyte may ask for an hour of work. Only what passes here is given to Pillow.
"""

import re
import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

from service.config.limits import too_large
from service.errors import ServiceError
from service.images.url import URL_ADVICE, is_url

MAX_ASPECT = 50_000
"""Largest ratio of the sides of an image."""
MAX_SCANS = 64
"""Maximum scans of a JPEG; encoders write up to some fifteen."""
MAX_EXIF_SEGMENTS = 16
"""Maximum segments of a JPEG that hold Exif; cameras write one. Pillow joins them, and copies all of them for each."""
_FREE_PARTS = 1024
_PART_BYTES = 512
"""An image may have `_FREE_PARTS` chunks or segments, and one more for each of so many bytes."""
_MAX_JUNK = 1 << 12
"""Maximum bytes of a JPEG that belong to no segment."""
_WINDOW = 1 << 20
"""Bytes that are searched at a time, to yield the GIL in between."""

_Part = TypeVar("_Part")

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_ALPHA = (4, 6)
_PNG_GRAY = 0
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset((0xC2, 0xC6, 0xCA, 0xCE))
_EXIF_SEGMENT, _EXIF = 0xE1, b"Exif\0\0"
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_WITHOUT_LENGTH = frozenset((0x00, 0x01, *range(0xD0, 0xD9)))
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)
_BITMAP_COMPRESSIONS = (0, 3, 6)
"""Without compression: plain, or with masks of the colours."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What the header of an image says.

    Attributes:
        format: `PNG`, `JPEG`, `WEBP` or `BMP`.
        width: columns.
        height: rows.
        weight: memory that decoding takes, in multiples of what a plain image of this size takes.
        scans: how often a decoder passes over it.
        is_animated: whether it has several frames.
    """

    format: str
    width: int
    height: int
    weight: int = 1
    scans: int = 1
    is_animated: bool = False

    @property
    def weighted_pixels(self) -> int:
        """Pixels, times `weight`."""
        return self.width * self.height * self.weight

    @property
    def decoded_pixels(self) -> int:
        """Plain pixels whose decoding takes as long: of four scans, each takes a quarter of that, or less."""
        return self.width * self.height * max(self.weight, self.scans // 4)


def read_header(data: bytes, formats: Collection[str], place: str) -> ImageHeader:
    """Read the header of an image.

    Args:
        data: the encoded image.
        formats: the formats that are taken.
        place: how messages name the image.

    Raises:
        ServiceError: 400 `invalid_image`, 413 `image_too_large`, 415 `unsupported_image_format`.
    """
    read = next((reader for signature, reader in _READERS if signature.match(data)), None)
    if read is None:
        if is_url(data):
            message = f"{place} is a URL; {URL_ADVICE}"
            raise ServiceError(400, "invalid_image", message, {"expected": list(formats)})
        others = (*OTHER_PICTURES, *_NO_PICTURES)
        other = next((name for signature, name in others if signature.match(data)), None)
        if other is not None:
            raise _unsupported(place, formats, other)
        raise _unreadable(place, formats, "" if data else "it is empty")
    try:
        header = read(data)
    except (struct.error, _DamagedError) as error:
        raise _unreadable(place, formats, str(error)) from error
    except _ExcessError as error:
        raise too_large("image_too_large", place, error.count, error.limit, error.unit) from error
    if header.format not in formats:
        raise _unsupported(place, formats, header.format)
    _check_sides(header, formats, place)
    return header


class _DamagedError(Exception):
    """An image is not as its format demands."""


class _ExcessError(Exception):
    """An image has more of something than is taken."""

    def __init__(self, count: int, limit: int, unit: str) -> None:
        super().__init__(unit)
        self.count = count
        self.limit = limit
        self.unit = unit


def _unreadable(place: str, formats: Collection[str], problem: str = "") -> ServiceError:
    reason = f": {problem}" if problem else ""
    message = f"{place} is not an image that can be read{reason}; expected {', '.join(formats)}"
    return ServiceError(400, "invalid_image", message, {"expected": list(formats)})


def _unsupported(place: str, formats: Collection[str], found: str) -> ServiceError:
    message = f"{place} is {found}, which is not supported; expected {', '.join(formats)}"
    return ServiceError(
        415, "unsupported_image_format", message, {"format": found, "accepted": list(formats)}
    )


def _check_sides(header: ImageHeader, formats: Collection[str], place: str) -> None:
    short, long = sorted((header.width, header.height))
    if not short:
        raise _unreadable(place, formats, "it has no pixels")
    if long > MAX_ASPECT * short:
        message = f"{place} has {header.width} x {header.height} pixels; the maximum is 1 : {MAX_ASPECT}"
        details = {"sizes": [[header.width, header.height]], "limit": MAX_ASPECT}
        raise ServiceError(413, "image_too_large", message, details)


def _counted(data: bytes, parts: Iterator[_Part], unit: str) -> Iterator[_Part]:
    """Yield the parts of an image.

    Raises:
        _ExcessError: there are too many.
    """
    limit = _FREE_PARTS + len(data) // _PART_BYTES
    for count, part in enumerate(parts, 1):
        if count > limit:
            raise _ExcessError(count, limit, unit)
        yield part


def _read_png(data: bytes) -> ImageHeader:
    length, kind, width, height, depth, colour = struct.unpack_from(">I4sIIBB", data, len(_PNG_SIGNATURE))
    if (length, kind) != (13, b"IHDR"):
        raise _DamagedError("a PNG begins with IHDR")
    kinds = {data[at + 4 : at + 8] for at in _counted(data, _png_chunks(data), "chunks")}
    is_converted = colour in _PNG_ALPHA or (colour == _PNG_GRAY and depth > 8)
    return ImageHeader("PNG", width, height, 2 if is_converted else 1, is_animated=b"acTL" in kinds)


def _png_chunks(data: bytes) -> Iterator[int]:
    position = len(_PNG_SIGNATURE)
    while position + 12 <= len(data):
        yield position
        position += 12 + int.from_bytes(data[position : position + 4], "big")


def _read_webp(data: bytes) -> ImageHeader:
    kinds = {data[at : at + 4] for at in _counted(data, _riff_chunks(data), "chunks")}
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    else:
        raise _DamagedError("its first chunk is not known")
    # its decoder keeps two canvases, and copies the picture twice
    return ImageHeader("WEBP", width, height, 5, is_animated=b"ANIM" in kinds)


def _riff_chunks(data: bytes) -> Iterator[int]:
    position = 12
    while position + 8 <= len(data):
        yield position
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        # the frames of an animation are chunks of their own, after 16 bytes of the chunk that holds them
        position += 24 if data[position : position + 4] == b"ANMF" else 8 + size + size % 2


def _read_bmp(data: bytes) -> ImageHeader:
    offset, size = struct.unpack_from("<II", data, 10)
    if size == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        compression = 0
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    if compression not in _BITMAP_COMPRESSIONS:
        raise _DamagedError("a compressed BMP is not supported")
    width, height = abs(width), abs(height)
    needed = (width * bits + 31) // 32 * 4 * height
    if len(data) - offset < needed - 3:  # some writers leave out what fills the last row
        raise _DamagedError(f"it has {len(data)} bytes, and its pixels take {needed}")
    return ImageHeader("BMP", width, height, 2 if bits == 32 else 1)


def _read_jpeg(data: bytes) -> ImageHeader:
    width = height = scans = exifs = 0
    weight = 1
    for kind, start in _counted(data, _jpeg_segments(data), "segments"):
        if kind == _START_OF_SCAN:
            scans += 1
        elif kind in _FRAMES:
            rows, columns, components = struct.unpack_from(">HHB", data, start + 3)
            width, height = max(width, columns), max(height, rows)
            if kind in _PROGRESSIVE or components > 3:
                weight = 2  # all coefficients are kept, or a second image of other colours
        elif kind == _EXIF_SEGMENT and data.startswith(_EXIF, start + 2):
            exifs += 1
        if exifs > MAX_EXIF_SEGMENTS:
            raise _ExcessError(exifs, MAX_EXIF_SEGMENTS, "segments of Exif")
        if scans > MAX_SCANS:
            raise _ExcessError(scans, MAX_SCANS, "scans")
    return ImageHeader("JPEG", width, height, weight, scans)


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield each segment's marker, and where its length stands; fill bytes are segments of marker 0xFF."""
    position, junk = 2, 0
    while position + 4 <= len(data):
        if data[position] != 0xFF:
            begin, position = position, _find_marker(data, position)
            junk += position - begin
            if junk > _MAX_JUNK:
                raise _ExcessError(junk, _MAX_JUNK, "bytes between its segments")
            continue
        kind = data[position + 1]
        yield kind, position + 2
        if kind == _END_OF_IMAGE:
            return
        if kind == 0xFF:
            position += 1
        elif kind in _WITHOUT_LENGTH:
            position += 2
        else:
            position += 2 + max(2, int.from_bytes(data[position + 2 : position + 4], "big"))
            if kind == _START_OF_SCAN:
                position = _find_marker(data, position)


def _find_marker(data: bytes, position: int) -> int:
    """Return where the next marker stands, the end of the data where there is none; restarts are part of a scan."""
    while position < len(data):
        found = _MARKER.search(data, position, position + _WINDOW)
        if found:
            return found.start()
        position += _WINDOW - 1  # a marker may lie across the end of a window
    return len(data)


_READERS: tuple[tuple[re.Pattern[bytes], Callable[[bytes], ImageHeader]], ...] = (
    (re.compile(re.escape(_PNG_SIGNATURE)), _read_png),
    (re.compile(rb"\xff\xd8\xff"), _read_jpeg),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), _read_webp),
    (re.compile(rb"BM"), _read_bmp),
)
OTHER_PICTURES = (
    (re.compile(rb"GIF8[79]a"), "GIF"),
    (re.compile(rb"II[*+]\x00|MM\x00[*+]"), "TIFF"),
    (re.compile(rb"....ftyp(?:heic|heix|hevc|mif1|msf1)", re.DOTALL), "HEIC"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "AVIF"),
)
"""Formats of pictures that people send and that are not taken, so that a message can name what was sent."""
_NO_PICTURES = (
    (re.compile(rb"%PDF-"), "PDF"),
    (re.compile(rb"\xff\x0a|\x00\x00\x00\x0cJXL "), "JPEG XL"),
    (re.compile(rb"\s{0,64}<(?:\?xml|svg|!DOCTYPE svg)", re.IGNORECASE), "SVG"),
)
"""Others, of which the first bytes are less sure to be a picture's."""
