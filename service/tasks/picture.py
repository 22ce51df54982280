"""Encoded images -> upright 8-bit pictures, safe on any bytes."""

import struct
from io import BytesIO

import numpy as np
from PIL import BmpImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin, _imaging
from PIL.ExifTags import Base

from service.errors import ServiceError

FORMATS = tuple(
    plugin.format
    for plugin in (
        PngImagePlugin.PngImageFile,
        JpegImagePlugin.JpegImageFile,
        WebPImagePlugin.WebPImageFile,
        BmpImagePlugin.BmpImageFile,
    )
)
"""The formats that are taken; no other of Pillow's readers ever sees a client's bytes."""

# the limit of the service takes the place of Pillow's, which is one for the whole process
Image.MAX_IMAGE_PIXELS = None
# blocks so large that the allocator gives them back to the system: in smaller ones, hundreds of megabytes stay behind
_imaging.set_block_size(64 << 20)

_STRIP_PIXELS = 1 << 20
"""Pixels of a picture that are blended at once."""

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientation -> what turns the picture upright."""


def open_picture(data: bytes, place: str) -> Image.Image:
    """Read the header of an encoded image.

    Raises:
        ServiceError: 400 `invalid_image`.
    """
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except Exception as error:  # the readers raise whatever the bytes lead them to
        message = f"{place} is not an image that can be read; expected {', '.join(FORMATS)}"
        raise ServiceError(400, "invalid_image", message, {"expected": list(FORMATS)}) from error


def load_picture(picture: Image.Image, gray: bool, place: str) -> Image.Image:
    """Decode an opened picture: first frame, turned upright, transparency on white, mode `L` or `RGB`.

    Raises:
        ServiceError: 400 `invalid_image` where it is truncated or damaged.
    """
    try:
        picture.load()
        return _convert(_upright(picture), "L" if gray else "RGB")
    except Exception as error:  # as above
        message = f"{place} is damaged: {error}"
        raise ServiceError(400, "invalid_image", message[:300], {"format": picture.format}) from error


def _upright(picture: Image.Image) -> Image.Image:
    try:
        orientation = picture.getexif().get(Base.Orientation)
    except (OSError, SyntaxError, ValueError, KeyError, TypeError, struct.error, Warning):
        return picture  # damaged metadata do not make the picture worse
    turn = _UPRIGHT.get(orientation) if isinstance(orientation, int) else None
    return picture if turn is None else picture.transpose(turn)


def _convert(picture: Image.Image, mode: str) -> Image.Image:
    if picture.mode.startswith("I"):
        picture = _from_16_bit(picture)
    if picture.has_transparency_data:
        return _put_on_white(picture, mode)
    return picture if picture.mode == mode else picture.convert(mode)  # to its own mode, Pillow would copy it


def _put_on_white(picture: Image.Image, mode: str) -> Image.Image:
    """Blend a picture with white, some rows at a time, in place where it has the mode already.

    At 64 million pixels, a second picture would take 256 MB.
    """
    flat = picture if picture.mode == mode else Image.new(mode, picture.size)
    rows = max(1, _STRIP_PIXELS // picture.width)
    for top in range(0, picture.height, rows):
        box = (0, top, picture.width, min(top + rows, picture.height))
        strip = picture.crop(box)
        layer = strip if strip.mode in ("LA", "RGBA") else strip.convert("RGBA")
        ground = Image.new(mode, strip.size, "white")
        ground.paste(layer, mask=layer)
        flat.paste(ground, box)
    flat.info.pop("transparency", None)
    return flat


def _from_16_bit(picture: Image.Image) -> Image.Image:
    """Scale 16-bit grey to 8 bits; a grey level that stands for transparency becomes white."""
    levels = np.asarray(picture).clip(0, 65535).astype(np.uint16)
    transparent = picture.info.get("transparency")
    if isinstance(transparent, int):
        levels[levels == transparent] = 65535
    return Image.fromarray((levels >> 8).astype(np.uint8))
