"""Decodes whole pictures to pixels, and cuts parts of them out."""

from collections.abc import Sequence

import numpy as np

from engine import Array
from service.config.image_config import ImageConfig
from service.config.limits import Limits
from service.images.encoded_image import EncodedImage
from service.images.image_header import ImageHeader
from service.images.preparation import ImageInput, open_images, prepare

Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of a picture."""


def whole_picture(data: bytes, config: ImageConfig, size: tuple[int, int], limits: Limits) -> Array:
    """Return a picture as uint8 (height, width, 3), red first.

    Args:
        data: the encoded picture.
        config: how the model's pictures are decoded.
        size: width and height to scale it to.
        limits: how large a picture may be.

    Raises:
        ServiceError: the picture cannot be decoded.
        NeedsDecoderError: this thread leaves large pictures to others.
    """
    width, height = size
    whole = config.model_copy(
        update={
            "size": (height, width),
            "colour": "rgb",
            "resize": "stretch",
            "shorter_side": None,
            "scale_up": True,
            "scale": 1.0,
            "mean": (0.0,),
            "std": (1.0,),
        }
    )
    images = open_images([data], limits.image_pixels, config.formats)
    target = ImageInput(1, True, height, width, np.dtype(np.uint8))
    pixels = prepare(images, whole, target, limits.decode_seconds).array[0]
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))


def cut_boxes(pixels: Array, boxes: Sequence[Box], margin: float) -> list[EncodedImage]:
    """Return parts of a picture as images that need no decoding.

    Args:
        pixels: what `whole_picture` gave.
        boxes: the parts, each widened to whole pixels, and to one at least.
        margin: part of a box's width and height that is added on each side, within the picture.
    """
    from PIL import Image  # noqa: PLC0415  # a start needs no Pillow

    whole = Image.fromarray(pixels)
    crops = []
    for box in boxes:
        corners = whole_box(box, margin, whole.size)
        crop = whole.crop(corners)
        crops.append(EncodedImage(b"", ImageHeader("PNG", *crop.size), "the crop", crop))
    return crops


def whole_box(box: Box, margin: float, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a box with its margin in whole pixels, within a picture of a width and a height."""
    left, top, right, bottom = box
    across, down = margin * (right - left), margin * (bottom - top)
    start = min(max(0, int(np.floor(left - across))), size[0] - 1)
    above = min(max(0, int(np.floor(top - down))), size[1] - 1)
    end = min(size[0], max(start + 1, int(np.ceil(right + across))))
    below = min(size[1], max(above + 1, int(np.ceil(bottom + down))))
    return start, above, end, below
