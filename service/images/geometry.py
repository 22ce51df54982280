"""Where a picture lies in the input that was made of it."""

from dataclasses import dataclass

import numpy as np

from engine import Array
from service.config.image_config import ImageConfig


@dataclass(frozen=True, slots=True)
class ImageGeometry:
    """A picture's size, and where it lies in the input of a model: `input = picture * scale + offset`.

    Coordinates count from the upper left corner of the upper left pixel, x to the right and y down.

    Attributes:
        width: columns of the picture, upright.
        height: its rows.
        scale: pixels of the input per pixel of the picture, along x and y.
        offset: where the picture's upper left corner lies in the input, x and y in pixels of the input; negative
            where the picture is cut off.
    """

    width: int
    height: int
    scale: tuple[float, float]
    offset: tuple[float, float]

    def to_picture(self, points: Array) -> Array:
        """Return points of the input as points of the picture.

        Args:
            points: (…, 2), x and y in pixels of the input.

        Returns:
            (…, 2), x and y in pixels of the picture; points outside it are moved to its edge.
        """
        moved = (points - np.array(self.offset)) / np.array(self.scale)
        return np.asarray(moved.clip(0, (self.width, self.height)))


def place_image(config: ImageConfig, size: tuple[int, int], target: tuple[int, int]) -> ImageGeometry:
    """Return where a picture lies in an input, as the model's configuration says.

    Args:
        config: how pictures are prepared.
        size: width and height of the upright picture.
        target: width and height of the input.
    """
    width, height = size
    if config.resize == "fit":
        most = target if config.scale_up else (min(target[0], width), min(target[1], height))
        shown = fitting_size(size, most)
        bars = (target[0] - shown[0]) // 2, (target[1] - shown[1]) // 2
        return ImageGeometry(width, height, (shown[0] / width, shown[1] / height), bars)
    if config.resize == "height":
        columns = min(target[0], width_at(size, target[1]))
        return ImageGeometry(width, height, (columns / width, target[1] / height), (0.0, 0.0))
    if config.resize == "crop" and config.shorter_side is not None:
        return _cut(size, target, config.shorter_side)
    if config.resize == "crop":
        left, top, right, bottom = centre_box(size, target, config.crop_fraction)
        scale = target[0] / (right - left), target[1] / (bottom - top)
        return ImageGeometry(width, height, scale, (-left * scale[0], -top * scale[1]))
    return ImageGeometry(width, height, (target[0] / width, target[1] / height), (0.0, 0.0))


def width_at(size: tuple[int, int], height: int) -> int:
    """Return how wide a picture is, to whole pixels upwards, when it is scaled to a height."""
    return max(1, -(-size[0] * height // size[1]))


def _cut(size: tuple[int, int], target: tuple[int, int], shorter_side: int) -> ImageGeometry:
    """Scale the shorter side, and cut the centre at whole pixels, as torchvision's Resize and CenterCrop do."""
    width, height = (int(shorter_side * side / min(size)) for side in size)
    left, top = round((width - target[0]) / 2), round((height - target[1]) / 2)
    return ImageGeometry(*size, (width / size[0], height / size[1]), (-left, -top))


def fitting_size(size: tuple[int, int], target: tuple[int, int]) -> tuple[int, int]:
    """Return the largest width and height of a picture's aspect ratio, to whole pixels, that fit into a target."""
    factor = min(target[0] / size[0], target[1] / size[1])
    width = max(1, min(target[0], round(size[0] * factor)))
    height = max(1, min(target[1], round(size[1] * factor)))
    return width, height


def centre_box(
    size: tuple[int, int], target: tuple[int, int], fraction: float
) -> tuple[float, float, float, float]:
    """Return the largest box of the target's aspect ratio in the middle of a picture, times `fraction`.

    Returns:
        Left, top, right and bottom in pixels of the picture.
    """
    factor = fraction * min(size[0] / target[0], size[1] / target[1])
    width, height = min(size[0], target[0] * factor), min(size[1], target[1] * factor)
    left, top = (size[0] - width) / 2, (size[1] - height) / 2
    return left, top, left + width, top + height
