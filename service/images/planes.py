"""Makes the planes of numbers that a model takes of one encoded image."""

from typing import Any

import numpy as np
from PIL import Image

from engine import Array
from service.config.image_config import ImageConfig
from service.images.encoded_image import EncodedImage
from service.images.geometry import ImageGeometry, place_image
from service.images.image_file import load_image, open_image, upright_size
from service.images.image_header import ImageHeader
from service.images.resizing import Part, resize

_DRAFT_PIXELS = 4_000_000
"""Pixels from which on a JPEG may be decoded at a part of its size."""
_DRAFT_MARGIN = 3
"""How many times the size that is needed is left at least; the filter then smooths what the decoder does otherwise."""
_DRAFT_FACTORS = (8, 4, 2)


def make_planes(image: EncodedImage, config: ImageConfig, out: Array) -> tuple[int, int]:
    """Decode an image, and write it as planes.

    Args:
        image: the image.
        config: how to prepare it.
        out: (channels, height, width), which is written; of integers only where the configuration keeps levels.

    Returns:
        Width and height of the image, upright.

    Raises:
        ServiceError: 400 `invalid_image`.
        MemoryError: there is too little memory.
    """
    opened = image.opened or open_image(image.data, image.header, image.place)
    size = upright_size(opened)
    geometry = place_image(config, size, (out.shape[2], out.shape[1]))
    factor = _reduce(opened, geometry, config)
    loaded = load_image(opened, config.colour == "gray", image.place, config.background)
    corner, part = _shown(geometry, (out.shape[2], out.shape[1]), factor)
    levels = resize(loaded, part, config)
    if part.size != (out.shape[2], out.shape[1]):
        _normalise(np.full((1, 1, config.channels), config.pad, np.uint8), config, out)
    left, top = corner
    width, height = part.size
    _normalise(levels, config, out[:, top : top + height, left : left + width])
    return size


def decode_image(data: bytes, arguments: dict[str, Any]) -> tuple[tuple[int, int], list[Array]]:
    """Decode an image; in a decoder process. Returns its size, and its planes."""
    image = EncodedImage(data, ImageHeader(**arguments["header"]), arguments["place"])
    out = np.empty(arguments["shape"], arguments["dtype"])
    return make_planes(image, ImageConfig.model_validate(arguments["config"]), out), [out]


def _reduce(image: Image.Image, geometry: ImageGeometry, config: ImageConfig) -> int:
    """Have a large JPEG decoded at a part of its size if it is to be smaller still; returns how many times smaller."""
    width, height = image.size
    is_large = image.format == "JPEG" and width * height >= _DRAFT_PIXELS
    if not (is_large and config.draft and config.smooths):
        return 1
    most = 1 / max(geometry.scale) / _DRAFT_MARGIN
    for factor in _DRAFT_FACTORS:
        # of other sizes, the last pixels would stand for less than the others do
        if factor <= most and width % factor == height % factor == 0:
            image.draft(None, (width // factor, height // factor))
            return width // image.width
    return 1


def _shown(geometry: ImageGeometry, size: tuple[int, int], factor: int) -> tuple[tuple[int, int], Part]:
    """Return where the part of an array begins that shows the picture, and which part of the picture that is.

    Args:
        geometry: where the picture lies.
        size: columns and rows of the array.
        factor: how many times smaller the picture was decoded.
    """
    begins, counts, starts, ends = [], [], [], []
    sides = (geometry.width, geometry.height)
    for most, side, scale, offset in zip(size, sides, geometry.scale, geometry.offset, strict=True):
        begin = max(0, round(offset))
        end = min(most, round(offset + side * scale))
        begins.append(begin)
        counts.append(end - begin)
        starts.append(max(0.0, _snapped((begin - offset) / scale)) / factor)
        ends.append(min(float(side), _snapped((end - offset) / scale)) / factor)
    return (begins[0], begins[1]), Part((starts[0], starts[1], ends[0], ends[1]), (counts[0], counts[1]))


def _snapped(place: float) -> float:
    """Return a place without what floating-point arithmetic has added to a whole number."""
    whole = round(place)
    return float(whole) if abs(place - whole) < 1e-6 else place


def _normalise(levels: Array, config: ImageConfig, out: Array) -> None:
    """Write (level * scale - mean) / std of (height, width, channels) to `out` (channels, height, width)."""
    planes = levels.transpose(2, 0, 1)
    if config.colour == "bgr":
        planes = planes[::-1]
    if out.dtype.kind in "iu":  # some filters make fractions, and levels a little beyond those of pixels
        np.copyto(out, planes if planes.dtype == np.uint8 else np.rint(planes).clip(0, 255), casting="unsafe")
        return
    std = np.array(config.std).reshape(-1, 1, 1)
    mean = np.array(config.mean).reshape(-1, 1, 1)
    np.multiply(planes, (config.scale / std).astype(np.float32), out=out)
    if mean.any():
        out -= (mean / std).astype(np.float32)
