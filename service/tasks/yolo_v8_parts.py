"""Finds the parts of an undecoded head of YOLOv8 among the outputs of a graph.

They are boxes, classes and what a box has besides. They are in one set of outputs or in several: maps of all
channels, as `Detect` gives them in training; maps of boxes and classes, and the coefficients of masks or the points
apart from them, as `Segment` and `Pose` do; or each apart.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine import Port
from service.tasks.yolo_v8_raw import BINS, Part

_BOX = 4 * BINS


@dataclass(frozen=True, slots=True)
class RawParts:
    """The parts of a head.

    Attributes:
        boxes: distributions of distances.
        classes: logits.
        extra: what a box has besides; None where that is nothing.
    """

    boxes: Part
    classes: Part
    extra: Part | None

    @property
    def maps(self) -> tuple[int, ...]:
        """Places of outputs that are maps, one for each stride, where any part has them; else none."""
        parts = (self.boxes, self.classes, self.extra)
        return next((part.outputs for part in parts if part is not None and len(part.outputs) > 1), ())

    @property
    def outputs(self) -> set[int]:
        """Places of all outputs that hold a part."""
        parts = (self.boxes, self.classes, self.extra)
        return {place for part in parts if part is not None for place in part.outputs}


@dataclass(frozen=True, slots=True)
class _Source:
    """Outputs that hold a value for each cell: maps of equally many channels, or the cells of all maps in one."""

    outputs: tuple[int, ...]
    channels: int
    cells_first: bool = False

    def part(self, first: int, count: int) -> Part:
        return Part(self.outputs, first, count, self.cells_first)


def find_parts(
    ports: Sequence[tuple[int, Port]],
    classes: int | None,
    extra: int,
    cells: int | None,
    ordered: Callable[[Sequence[int]], list[int]],
) -> list[RawParts]:
    """Return the ways in which outputs are the parts of a head; of several, those that leave the fewest outputs over.

    Args:
        ports: outputs that may be parts, and the place of each.
        classes: number of classes; None where it is not known.
        extra: values of a box besides its place and its classes.
        cells: of all maps together; None where the input's size is dynamic.
        ordered: returns places of maps, the finest first.
    """
    found: list[RawParts] = []
    for parts in _ways(_sources(ports, cells, ordered), classes, extra):
        found.append(parts)
        if len(found) > len(ports):  # more than enough to show that it is ambiguous
            break
    most = max((len(parts.outputs) for parts in found), default=0)
    return [parts for parts in found if len(parts.outputs) == most]


def _sources(
    ports: Sequence[tuple[int, Port]], cells: int | None, ordered: Callable[[Sequence[int]], list[int]]
) -> list[_Source]:
    maps: dict[int, list[int]] = {}
    sources = []
    for place, port in ports:
        if port.shape is None or len(port.shape) not in (3, 4):
            continue
        channels, last = port.shape[1], port.shape[2]
        if len(port.shape) == 4 and channels is not None:
            maps.setdefault(channels, []).append(place)
        elif len(port.shape) == 3 and channels is not None and (last is None or cells in (None, last)):
            sources.append(_Source((place,), channels))
        elif len(port.shape) == 3 and last is not None and channels in (None, cells):
            sources.append(_Source((place,), last, cells_first=True))
    return sources + [
        _Source(tuple(ordered(places)), channels) for channels, places in maps.items() if len(places) > 1
    ]


def _ways(sources: Sequence[_Source], classes: int | None, extra: int) -> Iterator[RawParts]:
    for one in sources:
        count = one.channels - _BOX - extra if classes is None else classes
        if count > 0 and one.channels == _BOX + count + extra:
            behind = one.part(_BOX + count, extra) if extra else None
            yield RawParts(one.part(0, _BOX), one.part(_BOX, count), behind)
        count = one.channels - _BOX if classes is None else classes
        if extra and count > 0 and one.channels == _BOX + count:
            for apart in _beside(sources, [one], extra):
                yield RawParts(one.part(0, _BOX), one.part(_BOX, count), apart.part(0, extra))
        if one.channels == _BOX:
            yield from _apart(one, sources, classes, extra)


def _apart(boxes: _Source, sources: Sequence[_Source], classes: int | None, extra: int) -> Iterator[RawParts]:
    """Return the ways in which boxes and classes stand apart."""
    for scores in _beside(sources, [boxes], classes):
        place, logits = boxes.part(0, _BOX), scores.part(0, scores.channels)
        if not extra:
            yield RawParts(place, logits, None)
        for apart in _beside(sources, [boxes, scores], extra) if extra else ():
            yield RawParts(place, logits, apart.part(0, extra))


def _beside(sources: Sequence[_Source], taken: Sequence[_Source], channels: int | None) -> Iterator[_Source]:
    """Return the sources that fit beside others: of that many channels, and of as many maps as they have."""
    maps = {len(one.outputs) for one in taken if len(one.outputs) > 1}
    for one in sources:
        fits = channels is None or one.channels == channels
        alike = len(one.outputs) == 1 or not maps or len(one.outputs) in maps
        if fits and alike and one not in taken:
            yield one
