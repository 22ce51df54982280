"""Accessed regions of a kernel's arguments, and their bounds check.

Every kernel states the regions of its arguments. A program is assembled only of calls whose views have every element
of these regions: so a kernel that expects padding cannot be given a tensor without, nor one whose channels lie apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from engine.compiler.memory.view import BufferKind, View

IMAGE = (0, 2, 3, 1)
"""Axes of (batch, channels, rows, columns) as kernels for images go over them: images, rows, columns, channels."""
MATRIX = (0, 1, 2, 3)
"""The same of a batch of matrices, whose columns are channels: two axes of the batch, rows, columns."""


class RegionError(Exception):
    """A kernel would touch memory that it is not given: a mistake in the compiler, not in a model."""


@dataclass(frozen=True, slots=True)
class Region:
    """The float32 elements that a kernel may touch of one argument, counted from the argument's address.

    Alignment: that of an element, 4 bytes; every vector load and store of a kernel is an unaligned one.

    Attributes:
        shape: extents.
        strides: elements between neighbours along each axis.
        is_written: whether the kernel writes the elements; else it only reads them.
        order: which axes of a view of as many dimensions these are, so that its layout is checked as well; None where
            only the elements matter, as for weights that are packed for the kernel.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_written: bool = False
    order: tuple[int, ...] | None = None

    @property
    def stop(self) -> int:
        """The place after the last element."""
        return 1 + sum(
            (extent - 1) * max(0, stride) for extent, stride in zip(self.shape, self.strides, strict=True)
        )

    def __str__(self) -> str:
        return f"{self.shape} with strides {self.strides}"


def line(size: int, is_written: bool = False) -> Region:
    """Return the region of elements that are contiguous."""
    return Region((size,), (1,), is_written)


def pixels(
    images: int,
    size: tuple[int, int],
    channels: int,
    strides: tuple[int, int, int],
    is_written: bool = False,
    order: tuple[int, ...] = IMAGE,
) -> Region:
    """Return the region of images whose channels are contiguous.

    Args:
        images: batch.
        size: rows and columns.
        channels: channels.
        strides: elements between images, rows and columns.
        is_written: whether the kernel writes it.
        order: which of a view's axes are images, rows, columns and channels.
    """
    return Region((images, *size, channels), (*strides, 1), is_written, order)


def windows(size: int, kernel: int, stride: int, dilation: int) -> int:
    """Return the elements of an axis that `size` windows reach over."""
    return (size - 1) * stride + (kernel - 1) * dilation + 1


def check_arguments(name: str, regions: Sequence[Region], arguments: Sequence[View]) -> None:
    """Check that a kernel touches nothing but its arguments, and writes only what no other argument overlaps.

    Args:
        name: the kernel's.
        regions: what it touches of each argument.
        arguments: what it is given.

    Raises:
        RegionError: it could.
    """
    if len(regions) != len(arguments):
        raise RegionError(f"{name} takes {len(regions)} arguments; got {len(arguments)}")
    for region, view in zip(regions, arguments, strict=True):
        try:
            check_region(region, view)
        except RegionError as error:
            raise RegionError(f"{name}: {error}") from error
    check_apart(regions, arguments)


def check_region(region: Region, view: View) -> None:
    """Check that each element of a region is one of a view's.

    The axes of a region are assigned to those of the view: an axis takes those whose strides are multiples of its own,
    and together they must end before it does. What cannot be assigned so counts as outside.

    Raises:
        RegionError: an element may lie outside.
    """
    if prod(region.shape) == 0:
        return
    if region.is_written and view.buffer.kind in (BufferKind.CONSTANT, BufferKind.VALUE):
        raise RegionError(
            f"a kernel writes {region} to a buffer that runs only read: a {view.buffer.kind.value}"
        )
    room = [(stride, extent - 1) for extent, stride in _lattice(view.shape, view.strides)]
    for extent, stride in reversed(_lattice(region.shape, region.strides)):
        place = next(
            (i for i, (step, left) in enumerate(room) if stride % step == 0 and stride // step <= left), None
        )
        if place is None:
            raise _outside(region, view)
        step, left = room[place]
        room[place] = step, left - (extent - 1) * (stride // step)
        if room[place][1] < 0:
            raise _outside(region, view)
    if region.order is not None and not _has_layout(region, view, region.order):
        raise RegionError(
            f"a kernel takes axes {region.order} of a view as {region}; it has {view.shape}, strides {view.strides}"
        )
    if view.offset + region.stop > view.buffer.size or view.offset < 0:
        raise RegionError(
            f"a kernel's region {region} at {view.offset} ends beyond a buffer of {view.buffer.size} elements"
        )


def check_apart(regions: Sequence[Region], views: Sequence[View]) -> None:
    """Check that what one argument of a call writes, no other argument of it touches.

    Raises:
        RegionError: two arguments may share an element that is written.
    """
    for place, (region, view) in enumerate(zip(regions, views, strict=True)):
        if not region.is_written:
            continue
        for other_place, (other, there) in enumerate(zip(regions, views, strict=True)):
            if other_place != place and there.buffer is view.buffer and _may_meet(region, view, other, there):
                raise RegionError(f"a kernel writes {region} where another of its arguments, {other}, lies")


def _has_layout(region: Region, view: View, order: tuple[int, ...]) -> bool:
    """Whether each axis of a region is the one of the view that it is meant to be, or two of them end to end."""
    missing = len(order) - len(view.shape)
    if missing:
        seen: View | None = View(
            view.buffer, view.offset, (1,) * missing + view.shape, (0,) * missing + view.strides
        )
    else:
        seen = view.permuted(order)
    while seen is not None:
        axes = zip(region.shape, region.strides, seen.shape, seen.strides, strict=True)
        if all(count == 1 or (count <= extent and step == there) for count, step, extent, there in axes):
            return True
        images, rows, columns, channels = seen.shape
        seen = seen.reshaped((images, 1, rows * columns, channels)) if rows > 1 else None
    return False


def _outside(region: Region, view: View) -> RegionError:
    return RegionError(
        f"a kernel's region {region} is no part of a view {view.shape} with strides {view.strides}"
    )


def _lattice(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return the axes that have neighbours, as (extent, stride), largest stride first, those end to end as one."""
    axes = [axis for axis in zip(shape, strides, strict=True) if axis[0] > 1 and axis[1]]
    if any(stride < 0 for _, stride in axes):
        raise RegionError(f"a view {tuple(shape)} goes backwards: strides {tuple(strides)}")
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted(axes, key=lambda axis: (-axis[1], -axis[0])):
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return merged


def _may_meet(one: Region, view: View, other: Region, there: View) -> bool:
    """Whether two regions of one buffer may have an element in common; True if unknown.

    They have none if one ends before the other begins, or if that is so within every period of a stride that all
    larger strides are multiples of: parts of a whole side by side, or its even and its odd places.
    """
    distance = there.offset - view.offset
    if distance < 0:
        return _may_meet(other, there, one, view)
    if distance >= one.stop:
        return False
    axes = [_axes(region) for region in (one, other)]
    return not any(
        _are_apart_within(period, distance, *axes)
        for period in {stride for _, stride in (*axes[0], *axes[1])}
    )


def _axes(region: Region) -> list[tuple[int, int]]:
    """Return the axes that have neighbours, as (extent, stride)."""
    return [axis for axis in zip(region.shape, region.strides, strict=True) if axis[0] > 1 and axis[1]]


def _are_apart_within(
    period: int, distance: int, one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]
) -> bool:
    """Whether, counted modulo a period, one region ends before another that begins at a distance from it."""
    if any(stride >= period and stride % period for _, stride in (*one, *other)):
        return False
    reaches = [
        sum((extent - 1) * stride for extent, stride in axes if stride < period) for axes in (one, other)
    ]
    start = distance % period
    return reaches[0] < start and start + reaches[1] < period
