"""torchvision's operators, element by element as their papers and documentation define them.

torchvision itself is no part of the project's tools. Each function gets `torch` passed in, as the case table does.
"""

import math
from typing import Any


def pixel(plane: Any, row: int, column: int) -> Any:
    """Return the values (channels) of one element of a plane (channels, height, width), zero outside."""
    height, width = plane.shape[1:]
    return plane[:, row, column] if 0 <= row < height and 0 <= column < width else plane.new_zeros(len(plane))


def between(plane: Any, y: float, x: float) -> Any:
    """Interpolate linearly between the four elements around a point."""
    row, column = math.floor(y), math.floor(x)
    down, right = y - row, x - column
    return (
        pixel(plane, row, column) * ((1 - down) * (1 - right))
        + pixel(plane, row, column + 1) * ((1 - down) * right)
        + pixel(plane, row + 1, column) * (down * (1 - right))
        + pixel(plane, row + 1, column + 1) * (down * right)
    )


def deform_conv2d(
    torch: Any,
    input: Any,
    offset: Any,
    weight: Any,
    bias: Any,
    mask: Any,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
) -> Any:
    """Deformable convolution, version 2 where there is a mask."""
    batch, channels = input.shape[:2]
    kernel, size = weight.shape[2:], offset.shape[2:]
    taps = kernel[0] * kernel[1]
    split = offset.shape[1] // (2 * taps)
    columns = input.new_zeros(batch, channels, taps, *size)
    for item in range(batch):
        for part in range(split):
            own = slice(part * channels // split, (part + 1) * channels // split)
            for tap in range(taps):
                place = part * taps + tap
                for row in range(size[0]):
                    for column in range(size[1]):
                        y = row * stride[0] - padding[0] + tap // kernel[1] * dilation[0]
                        x = column * stride[1] - padding[1] + tap % kernel[1] * dilation[1]
                        y += float(offset[item, 2 * place, row, column])
                        x += float(offset[item, 2 * place + 1, row, column])
                        value = between(input[item, own], y, x)
                        if mask is not None:
                            value = value * mask[item, place, row, column]
                        columns[item, own, tap, row, column] = value
    groups = channels // weight.shape[1]
    parts = columns.reshape(batch, groups, weight.shape[1] * taps, -1)
    filters = weight.reshape(groups, -1, weight.shape[1] * taps)
    output = torch.einsum("gok,bgkp->bgop", filters, parts).reshape(batch, weight.shape[0], *size)
    return output if bias is None else output + bias[:, None, None]


def roi_align(
    torch: Any,
    input: Any,
    rois: Any,
    output_size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    """RoIAlign: the mean of samples within each cell of each region."""
    regions = [
        region(input[int(roi[0])], roi[1:].tolist(), output_size, spatial_scale, sampling_ratio, aligned)
        for roi in rois
    ]
    return torch.stack(regions) if regions else input.new_zeros(0, input.shape[1], *output_size)


def region(
    plane: Any, box: list[float], size: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> Any:
    """Pool one region of one item (channels, height, width)."""
    left, top, right, bottom = (edge * scale - (0.5 if aligned else 0) for edge in box)
    width, height = right - left, bottom - top
    if not aligned:
        width, height = max(width, 1), max(height, 1)
    down = ratio if ratio > 0 else math.ceil(height / size[0])
    across = ratio if ratio > 0 else math.ceil(width / size[1])
    output = plane.new_zeros(len(plane), *size)
    for row in range(size[0]):
        for column in range(size[1]):
            for i in range(down):
                for j in range(across):
                    y = top + (row + (i + 0.5) / down) * height / size[0]
                    x = left + (column + (j + 0.5) / across) * width / size[1]
                    output[:, row, column] += near(plane, y, x)
    return output / max(down * across, 1)


def near(plane: Any, y: float, x: float) -> Any:
    """Interpolate at a point, at the border for one up to an element outside, zero beyond."""
    height, width = plane.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return plane.new_zeros(len(plane))
    return between(plane, min(max(y, 0), height - 1), min(max(x, 0), width - 1))
