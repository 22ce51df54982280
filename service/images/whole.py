"""Decodes whole pictures to pixels, and cuts parts of them out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine import Array
from service.config.image_config import ImageConfig
from service.config.limits import Limits
from service.images.encoded_image import EncodedImage
from service.images.image_header import ImageHeader
from service.images.preparation import ImageInput, open_images, prepare

if TYPE_CHECKING:
    from PIL import Image

Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of a picture."""
Point = tuple[float, float]
"""x and y in pixels of a picture."""
Corners = tuple[Point, Point, Point, Point]
"""Upper left, upper right, lower right and lower left corner of a part of a picture that may be rotated."""

_UPRIGHT_LINE = 1.5
"""Height over width from which a part is taken for a line that runs from the top to the bottom, as PP-OCR does."""


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


def cut_parts(
    pixels: Array, parts: Sequence[Array], margin: float, rotations: Sequence[int], most: int
) -> list[EncodedImage]:
    """Return parts of a picture as images that need no decoding.

    Args:
        pixels: what `whole_picture` gave.
        parts: x and y of the upper left and the lower right corner of a box, (2, 2), which is widened to whole pixels,
            and to one at least; or of four corners, (4, 2), as `Corners` has them, between which is interpolated.
        margin: part of a box's width and height that is added on each side, within the picture.
        rotations: for each part by how many degrees its content is rotated clockwise, which is undone: 0, 90, 180, 270.
        most: pixels of a part; one that has more is scaled down to them.
    """
    from PIL import Image  # noqa: PLC0415  # a start needs no Pillow

    whole = Image.fromarray(pixels)
    crops = []
    for part, degrees in zip(parts, rotations, strict=True):
        is_box = len(part) == 2
        crop = _cropped(whole, part, margin, most) if is_box else _straightened(whole, part, most)
        if degrees:
            crop = crop.transpose(getattr(Image.Transpose, f"ROTATE_{degrees}"))
        crops.append(EncodedImage(b"", ImageHeader("PNG", *crop.size), "the crop", crop))
    return crops


def _cropped(whole: "Image.Image", box: Array, margin: float, most: int) -> "Image.Image":
    from PIL import Image  # noqa: PLC0415  # as above

    left, top, right, bottom = place = whole_box(box, margin, whole.size)
    size = _reduced(right - left, bottom - top, most)
    if size == (right - left, bottom - top):
        return whole.crop(place)
    return whole.resize(size, Image.Resampling.BICUBIC, box=place)


def _reduced(width: float, height: float, most: int) -> tuple[int, int]:
    """Return a size in whole pixels, at least 1 by 1: less than given where that has more than `most` pixels."""
    factor = min(1.0, (most / max(1.0, width * height)) ** 0.5)
    columns = min(max(1, int(width * factor)), most)
    return columns, min(max(1, int(height * factor)), max(1, most // columns))


def _straightened(whole: "Image.Image", corners: Array, most: int) -> "Image.Image":
    """Return what lies between corners; a part that is much higher than wide is rotated so that it lies."""
    from PIL import Image  # noqa: PLC0415  # as above

    sides = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    width, height = _reduced(max(sides[::2]), max(sides[1::2]), most)
    counterclockwise = corners[[0, 3, 2, 1]].ravel().tolist()
    method = Image.Transform.QUAD
    part = whole.transform((width, height), method, counterclockwise, Image.Resampling.BICUBIC)
    return part.transpose(Image.Transpose.ROTATE_90) if height >= _UPRIGHT_LINE * width else part


def whole_box(box: Array, margin: float, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a box (2, 2) with its margin in whole pixels, within a picture of a width and a height."""
    (left, top), (right, bottom) = box.tolist()
    across, down = margin * (right - left), margin * (bottom - top)
    start = min(max(0, int(np.floor(left - across))), size[0] - 1)
    above = min(max(0, int(np.floor(top - down))), size[1] - 1)
    end = min(size[0], max(start + 1, int(np.ceil(right + across))))
    below = min(size[1], max(above + 1, int(np.ceil(bottom + down))))
    return start, above, end, below
