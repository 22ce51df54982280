"""Reads encoded images, whatever their bytes, as upright images of 8 bits per channel."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Literal, cast

import numpy as np
from PIL import Image, _imaging
from PIL.ExifTags import Base

from service.config.image_formats import KNOWN_FORMATS
from service.errors import ServiceError
from service.images.image_header import ImageHeader
from service.images.picture_strips import Picture, PictureStrips

IMAGE_FORMATS = tuple(name.upper() for name in KNOWN_FORMATS)
"""The formats that are known; Pillow's readers of other formats never see a client's bytes."""

# the service has limits of its own; Pillow's would be one for the whole process
Image.MAX_IMAGE_PIXELS = None
# blocks of this size are returned to the system; of smaller ones, hundreds of megabytes would be kept
_imaging.set_block_size(64 << 20)

_LARGE_PIXELS = 4_000_000
"""Pixels from which on an image is not copied as a whole."""
_STRIP_PIXELS = 1 << 20
"""Pixels of an image that are blended at a time."""

Colour = tuple[int, int, int]
Background = Literal["auto"] | Colour
_WHITE: Colour = (255, 255, 255)
_BLACK: Colour = (0, 0, 0)
_HARDLY_SEEN = 15
"""Grey levels by which pixels may differ from a background and are not seen on it."""

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The transposition that turns an image upright, by EXIF orientation."""
_SWAPS = frozenset(_UPRIGHT[orientation] for orientation in (5, 6, 7, 8))
"""Those that exchange columns and rows."""


def open_image(data: bytes, header: ImageHeader, place: str) -> Image.Image:
    """Have Pillow read the header of an encoded image.

    Args:
        data: the image.
        header: what `read_header` found.
        place: how messages name the image.

    Raises:
        ServiceError: 400 `invalid_image`.
        MemoryError: there is too little memory.
    """
    try:
        image = Image.open(BytesIO(data), formats=[header.format])
    except MemoryError:
        raise
    except Exception as error:  # the readers raise any exception, depending on the bytes
        message = f"{place} is not an image that can be read; expected {', '.join(IMAGE_FORMATS)}"
        raise ServiceError(400, "invalid_image", message, {"expected": list(IMAGE_FORMATS)}) from error
    if image.size != (header.width, header.height):
        message = f"{place} is damaged: it has several sizes"
        raise ServiceError(400, "invalid_image", message, {"format": header.format})
    return image


def load_image(image: Image.Image, gray: bool, place: str, background: Background = "auto") -> Picture:
    """Decode an opened image: first frame, turned upright, put on a background, mode `L` or `RGB`.

    Args:
        image: what `open_image` gave.
        gray: whether the mode is to be `L`.
        place: how messages name it.
        background: red, green and blue of what is seen through transparent pixels; "auto": white, or black where
            on white nothing would be seen.

    Returns:
        The picture; a large one as strips, where it has to be turned or converted.

    Raises:
        ServiceError: 400 `invalid_image` where it is truncated or damaged.
        MemoryError: there is too little memory.
    """
    mode = "L" if gray else "RGB"
    with _reading(image, place):
        image.load()
        if image.width * image.height >= _LARGE_PIXELS:
            return _as_strips(image, mode, place, background)
        return _convert(_upright(image), mode, background)


def _as_strips(image: Image.Image, mode: str, place: str, background: Background) -> Picture:
    turn = _transposition(image)
    if turn is None and image.mode == mode and not image.has_transparency_data:
        return image
    is_auto = background == "auto" and not image.mode.startswith("I") and image.has_transparency_data
    colour = _visible(image) if is_auto else background

    def convert(strip: Image.Image) -> Image.Image:
        with _reading(image, place):
            return _convert(strip, mode, colour)

    return PictureStrips(image, mode, convert, turn)


@contextmanager
def _reading(image: Image.Image, place: str) -> Iterator[None]:
    """Raise what `load_image` raises, whatever Pillow does."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # as above
        if "out of memory" in str(error):  # an OSError with the decoder's words
            raise MemoryError from error
        message = f"{place} is damaged: {error}"
        raise ServiceError(400, "invalid_image", message[:300], {"format": image.format}) from error


def upright_size(image: Image.Image) -> tuple[int, int]:
    """Return the width and height that an opened image has when it is turned upright."""
    width, height = image.size
    return (height, width) if _transposition(image) in _SWAPS else (width, height)


def _transposition(image: Image.Image) -> Image.Transpose | None:
    try:
        orientation = image.getexif().get(Base.Orientation)
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, struct.error, Warning):
        return None  # damaged metadata do not affect the pixels
    return _UPRIGHT.get(orientation) if isinstance(orientation, int) else None


def _upright(image: Image.Image) -> Image.Image:
    turn = _transposition(image)
    return image if turn is None else image.transpose(turn)


def _convert(image: Image.Image, mode: str, background: Background) -> Image.Image:
    if image.mode.startswith("I"):
        image = _from_16_bit(image, _WHITE if background == "auto" else background)
    if image.has_transparency_data:
        return _put_on(image, mode, _visible(image) if background == "auto" else background)
    return (
        image if image.mode == mode else image.convert(mode)
    )  # Pillow copies it to convert it to its own mode


def _visible(image: Image.Image) -> Colour:
    """Return white, or black for an image that is seen on black, and not on white, as white ink is."""
    for colour in (_WHITE, _BLACK):
        for _, blended in _strips(image, "L", colour):
            levels = cast("tuple[int, int]", blended.getextrema())
            if any(abs(level - colour[0]) > _HARDLY_SEEN for level in levels):
                return colour
    return _WHITE


def _put_on(image: Image.Image, mode: str, colour: Colour) -> Image.Image:
    """Blend an image with a colour, some rows at a time, in place where it has the mode already.

    At 64 million pixels, a second image would take 256 MB.
    """
    flat = image if image.mode == mode else Image.new(mode, image.size)
    for box, ground in _strips(image, mode, colour):
        flat.paste(ground, box)
    flat.info.pop("transparency", None)
    return flat


def _strips(
    image: Image.Image, mode: str, colour: Colour
) -> Iterator[tuple[tuple[int, int, int, int], Image.Image]]:
    """Yield some rows of an image at a time, blended with a colour, and where they lie."""
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        box = (0, top, image.width, min(top + rows, image.height))
        strip = image.crop(box)
        layer = strip if strip.mode in ("LA", "RGBA") else strip.convert("RGBA")
        ground = Image.new("RGB", strip.size, colour).convert(mode)
        ground.paste(layer, mask=layer)
        yield box, ground


def _from_16_bit(image: Image.Image, ground: Colour) -> Image.Image:
    """Scale 16-bit grey to 8 bits; a grey level that stands for transparency becomes the background's."""
    levels = np.asarray(image).clip(0, 65535).astype(np.uint16)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        level = Image.new("RGB", (1, 1), ground).convert("L").getpixel((0, 0))
        levels[levels == transparent] = cast("int", level) << 8
    return Image.fromarray((levels >> 8).astype(np.uint8))
