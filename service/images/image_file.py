"""Reads encoded images, whatever their bytes, as upright images of 8 bits per channel."""

import struct
from io import BytesIO

import numpy as np
from PIL import Image, _imaging
from PIL.ExifTags import Base

from service.config.image_formats import KNOWN_FORMATS
from service.errors import ServiceError
from service.images.image_header import ImageHeader

IMAGE_FORMATS = tuple(name.upper() for name in KNOWN_FORMATS)
"""The formats that are known; Pillow's readers of other formats never see a client's bytes."""

# the service has limits of its own; Pillow's would be one for the whole process
Image.MAX_IMAGE_PIXELS = None
# blocks of this size are returned to the system; of smaller ones, hundreds of megabytes would be kept
_imaging.set_block_size(64 << 20)

_STRIP_PIXELS = 1 << 20
"""Pixels of an image that are blended at a time."""

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


def load_image(image: Image.Image, gray: bool, place: str) -> Image.Image:
    """Decode an opened image: first frame, turned upright, transparency on white, mode `L` or `RGB`.

    Raises:
        ServiceError: 400 `invalid_image` where it is truncated or damaged.
        MemoryError: there is too little memory.
    """
    try:
        image.load()
        return _convert(_upright(image), "L" if gray else "RGB")
    except MemoryError:
        raise
    except Exception as error:  # as above
        if "out of memory" in str(error):  # an OSError with the decoder's words
            raise MemoryError from error
        message = f"{place} is damaged: {error}"
        raise ServiceError(400, "invalid_image", message[:300], {"format": image.format}) from error


def _upright(image: Image.Image) -> Image.Image:
    try:
        orientation = image.getexif().get(Base.Orientation)
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, struct.error, Warning):
        return image  # damaged metadata do not affect the pixels
    turn = _UPRIGHT.get(orientation) if isinstance(orientation, int) else None
    return image if turn is None else image.transpose(turn)


def _convert(image: Image.Image, mode: str) -> Image.Image:
    if image.mode.startswith("I"):
        image = _from_16_bit(image)
    if image.has_transparency_data:
        return _put_on_white(image, mode)
    return (
        image if image.mode == mode else image.convert(mode)
    )  # Pillow copies it to convert it to its own mode


def _put_on_white(image: Image.Image, mode: str) -> Image.Image:
    """Blend an image with white, some rows at a time, in place where it has the mode already.

    At 64 million pixels, a second image would take 256 MB.
    """
    flat = image if image.mode == mode else Image.new(mode, image.size)
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        box = (0, top, image.width, min(top + rows, image.height))
        strip = image.crop(box)
        layer = strip if strip.mode in ("LA", "RGBA") else strip.convert("RGBA")
        ground = Image.new(mode, strip.size, "white")
        ground.paste(layer, mask=layer)
        flat.paste(ground, box)
    flat.info.pop("transparency", None)
    return flat


def _from_16_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey to 8 bits; a grey level that stands for transparency becomes white."""
    levels = np.asarray(image).clip(0, 65535).astype(np.uint16)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        levels[levels == transparent] = 65535
    return Image.fromarray((levels >> 8).astype(np.uint8))
