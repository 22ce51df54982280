"""Resizes decoded pictures in the arithmetic of Pillow, PyTorch or OpenCV.

Filters are separable: rows are blended first, then columns. Of rows, only those are looked at that something is made
of, which matters for pictures of millions of pixels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

from engine import Array
from service.config.image_config import ImageConfig, Resample
from service.images.axis_windows import (
    Axis,
    Windows,
    area,
    area_enlarged,
    bicubic,
    bilinear,
    nearest,
    smooth_bicubic,
    smooth_bilinear,
)
from service.images.picture_strips import Picture, PictureStrips, channels_of, crop_rows

_ROWS = 64
"""Rows of the result that are made at a time."""
_BLOCK_VALUES = 8 << 20
"""Numbers of the picture that these rows may be made of, as far as that is more than one row's."""
_COLUMNS = 32
"""Columns of the result that are blended at a time."""
_SLIGHT = 1e-6
"""What floating-point arithmetic may add to whole numbers of pixels."""
_MAX_CUT = 8
"""How many times as many pixels as are kept may be resized and cut; a long picture would become a huge one."""
_FIXED_BITS = 11
"""OpenCV's weights for whole grey levels are whole numbers of 1/2048."""

_PLAIN: dict[Resample, Callable[[Axis], Windows]] = {
    "nearest": nearest,
    "bilinear": bilinear,
    "bicubic": bicubic,
    "box": area_enlarged,
}
_SMOOTH: dict[Resample, Callable[[Axis], Windows]] = {
    "nearest": nearest,
    "bilinear": smooth_bilinear,
    "bicubic": smooth_bicubic,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a picture, and the size that it is to have.

    Attributes:
        box: left, top, right and bottom, in pixels of the picture.
        size: columns and rows of the result.
    """

    box: tuple[float, float, float, float]
    size: tuple[int, int]

    def axes(self, image: Picture, dtype: type[np.floating]) -> tuple[Axis, Axis]:
        """Return the axes along which the image is resized, columns and rows, with places of a dtype."""
        left, top, right, bottom = self.box
        columns, rows = self.size
        return (
            Axis(image.width, columns, (right - left) / columns, left, dtype),
            Axis(image.height, rows, (bottom - top) / rows, top, dtype),
        )


def resize(image: Picture, part: Part, config: ImageConfig) -> Array:
    """Resize a part of an image.

    Args:
        image: the picture.
        part: the part, and its new size.
        config: whose arithmetic, and which filter.

    Returns:
        uint8 or float32 (rows, columns, channels), grey levels of 0 to 255; float32 may be a little beyond.
    """
    if config.resize_as == "pillow":
        pixels = np.asarray(_resize_as_pillow(image, part, Image.Resampling[config.resample.upper()]))
        return pixels if pixels.ndim == 3 else pixels[..., None]
    if config.resize_as == "torch":
        columns, rows = part.axes(image, np.float32)
        make = (_SMOOTH if config.smooths else _PLAIN)[config.resample]
        return _blend(image, make(columns), make(rows), np.float32)
    return _resize_as_opencv(image, *part.axes(image, np.float64), config.resample)


def _resize_as_pillow(image: Picture, part: Part, resample: Image.Resampling) -> Image.Image:
    """Resize a part; where that is what resizing and cutting at whole pixels give, it is done so.

    Pillow keeps boxes in single precision, which may change grey levels by one.
    """
    left, top, right, bottom = part.box
    across, down = part.size[0] / (right - left), part.size[1] / (bottom - top)
    exact = image.width * across, image.height * down, left * across, top * down
    width, height, column, row = map(round, exact)
    is_whole = all(
        abs(place - whole) < _SLIGHT for place, whole in zip(exact, map(round, exact), strict=True)
    )
    if is_whole and width * height <= _MAX_CUT * part.size[0] * part.size[1]:
        resized = _resize_box(image, (width, height), resample, (0, 0, image.width, image.height))
        return resized.crop((column, row, column + part.size[0], row + part.size[1]))
    return _resize_box(image, part.size, resample, part.box)


def _resize_box(
    image: Picture, size: tuple[int, int], resample: Image.Resampling, box: tuple[float, float, float, float]
) -> Image.Image:
    """Resize a box of a picture; of strips in the same two passes that Pillow makes of a whole image.

    Both blend columns, round, and blend rows then: the results are equal. Pillow 13 begins with the rows where the
    height loses more than twice the pixels that the width does; rounded in between, grey levels differ there.
    """
    if not isinstance(image, PictureStrips):
        return image.resize(size, resample, box)
    left, top, right, bottom = box
    narrow = Image.new(image.mode, (size[0], image.height))
    for first, last in image.strips():
        count = last - first
        narrow.paste(
            image.rows(first, last).resize((size[0], count), resample, (left, 0, right, count)), (0, first)
        )
    return narrow.resize(size, resample, (0, top, size[0], bottom))


def _resize_as_opencv(image: Picture, columns: Axis, rows: Axis, resample: Resample) -> Array:
    """Resize as OpenCV's `resize` does 8-bit images, to the grey level."""
    if columns.step == rows.step == 1:
        resample = "nearest"  # nothing is resized
    shrinks = columns.step >= 1 and rows.step >= 1
    if resample == "box" and shrinks:
        return _average(image, columns, rows)
    make = _PLAIN[resample]
    across, down = _fixed(make(columns)), _fixed(make(rows))
    if resample in ("box", "bilinear"):
        return _blend_in_fixed_point(image, across, down)
    if resample == "nearest":
        return _blend(image, across, down, np.float32).astype(np.uint8)
    return _rounded(_blend(image, across, down, np.float64))


def _average(image: Picture, columns: Axis, rows: Axis) -> Array:
    """Return means over areas, as `INTER_AREA` does where it shrinks."""
    factors = columns.step, rows.step
    means = _blend(image, area(columns), area(rows), np.float32)
    if set(factors) == {2.0}:
        return np.floor(means + 0.5).astype(np.uint8)  # a path of its own there, which rounds halves up
    if all(factor.is_integer() for factor in factors):
        size = factors[0] * factors[1]
        sums = np.rint(means * size).astype(np.float32)
        return _rounded(sums * np.float32(1 / size))
    return _rounded(means)


def _rounded(levels: Array) -> Array:
    return np.rint(levels).clip(0, 255).astype(np.uint8)


def _fixed(windows: Windows) -> Windows:
    """Return windows with weights in 1/2048, rounded to whole numbers, as fractions."""
    unit = 1 << _FIXED_BITS
    return Windows(windows.taps, np.rint(windows.weights.astype(np.float32) * unit) / unit)


def _blend(image: Picture, across: Windows, down: Windows, dtype: type[np.floating]) -> Array:
    """Blend rows, then columns; returns (rows, columns, channels)."""
    channels = channels_of(image)
    height, width = len(down.taps), len(across.taps)
    out = np.empty((height, width, channels), dtype)
    most = _BLOCK_VALUES // (down.width * image.width * channels)
    for block in _blocks(height, max(1, min(_ROWS, most))):
        used = np.unique(down.taps[block])
        rows = _read_rows(image, used).astype(dtype)
        blended = down.matrix(block, used).astype(dtype) @ rows.reshape(len(used), -1)
        planes = np.ascontiguousarray(blended.reshape(-1, image.width, channels).transpose(2, 0, 1))
        for part in _blocks(width, _COLUMNS):
            used = np.arange(across.taps[part].min(), across.taps[part].max() + 1)
            columns = across.matrix(part, used).astype(dtype)
            out[block, part] = (planes[:, :, used[0] : used[-1] + 1] @ columns.T).transpose(1, 2, 0)
    return out


def _blend_in_fixed_point(image: Picture, across: Windows, down: Windows) -> Array:
    """Blend two columns, then two rows, in OpenCV's fixed-point arithmetic with its losses; returns 8 bits."""
    unit = 1 << _FIXED_BITS
    horizontal = np.rint(across.weights * unit).astype(np.int32)[..., None]
    vertical = np.rint(down.weights * unit).astype(np.int32)[..., None, None]
    out = np.empty((len(down.taps), len(across.taps), channels_of(image)), np.uint8)
    for block in _blocks(len(out), _ROWS):
        used = np.unique(down.taps[block])
        rows = _read_rows(image, used)
        sums = np.zeros((len(used), *out.shape[1:]), np.int32)
        for tap in range(across.width):
            sums += rows[:, across.taps[:, tap]] * horizontal[:, tap]
        sums >>= 4  # so that products with the weight of a row stay within 32 bits
        places = np.searchsorted(used, down.taps[block])
        levels = np.full(out[block].shape, 2, np.int32)
        for tap in range(down.width):
            levels += (sums[places[:, tap]] * vertical[block, tap]) >> 16
        out[block] = (levels >> 2).clip(0, 255)
    return out


def _blocks(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _read_rows(image: Picture, rows: Array) -> Array:
    """Return some rows of an image, in ascending order: uint8 (rows, width, channels)."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    pieces = [np.asarray(crop_rows(image, int(run[0]), int(run[-1]) + 1)) for run in np.split(rows, breaks)]
    return np.concatenate(pieces).reshape(len(rows), image.width, -1)
