"""Places the nodes of a graph in layers, from producers down to consumers, with few crossings (Sugiyama's method).

Ranks are longest paths; edges over several ranks get a bend in each; layers are sorted by the mean place of their
neighbours, alternately downwards and upwards, and the order with the fewest crossings is kept; then nodes move towards
the mean of their neighbours, as far as others let them.

Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for Visual Understanding of Hierarchical System Structures, IEEE
Transactions on Systems, Man, and Cybernetics 11(2), 1981.
"""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_SWEEPS = 8
_GAP, _RANK_GAP = 24.0, 44.0
_LONGEST_EDGE = 24
"""Ranks of the longest edge that is bent around the nodes between; of longer ones only the ends are drawn."""
_BENDS_PER_NODE, _MAX_BENDS_OF_SMALL = 2, 400
"""Maximum bends for each node, and of any graph at least; with more, shorter edges count as long."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a graph is drawn, in pixels.

    Attributes:
        centres: the centre of each node.
        ranks: the layer of each node, from 0; each edge leads to a higher one.
        paths: for each edge the points that it passes, from its producer's lower side to its consumer's upper one.
        stubs: whether an edge is so long that only its ends are to be drawn; its path is a straight line.
        width: width of the drawing.
        height: its height.
    """

    centres: list[Point]
    ranks: list[int]
    paths: list[list[Point]]
    stubs: list[bool]
    width: float
    height: float


class _Layers:
    """Nodes and bends by rank, in order."""

    def __init__(self, sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> None:
        self.widths = [width for width, _ in sizes]
        self.heights = [height for _, height in sizes]
        self.ranks = _ranks(len(sizes), edges)
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        spans = [self.ranks[consumer] - self.ranks[producer] for producer, consumer in edges]
        longest = _longest_bent(spans, len(sizes))
        self.stubs = [span > longest for span in spans]
        self.chains = [
            [] if is_stub else self._chain(*edge) for edge, is_stub in zip(edges, self.stubs, strict=True)
        ]
        self.rows: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for node, rank in enumerate(self.ranks):
            self.rows[rank].append(node)

    def _chain(self, producer: int, consumer: int) -> list[int]:
        """Add the bends of an edge; return them."""
        span = self.ranks[consumer] - self.ranks[producer]
        bends: list[int] = []
        for step in range(1, span):
            bends.append(len(self.ranks))
            self.ranks.append(self.ranks[producer] + step)
            self.widths.append(8.0)
            self.heights.append(0.0)
            self.above.append([])
            self.below.append([])
        for upper, lower in zip([producer, *bends], [*bends, consumer], strict=True):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        return bends

    def sort(self) -> None:
        """Order the rows so that few edges cross."""
        place = [0] * len(self.ranks)
        for row in self.rows:
            _number(row, place)
        best, fewest = [list(row) for row in self.rows], self._crossings(place)
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            neighbours = self.above if sweep % 2 == 0 else self.below
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                keys = {
                    node: _mean([place[other] for other in neighbours[node]], place[node]) for node in row
                }
                row.sort(key=keys.__getitem__)
                _number(row, place)
            crossings = self._crossings(place)
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _crossings(self, place: Sequence[int]) -> int:
        """Return how many pairs of edges cross between the rows."""
        crossings = 0
        for row in self.rows:
            ends: list[int] = []
            for node in row:
                reached = sorted(place[other] for other in self.below[node])
                crossings += sum(len(ends) - bisect_right(ends, end) for end in reached)
                for end in reached:
                    insort(ends, end)
        return crossings

    def columns(self) -> list[float]:
        """Return the x of each node and bend: near its neighbours, and beside those of its row."""
        x = [0.0] * len(self.ranks)
        for row in self.rows:
            _spread(row, x, self.widths)
        for sweep in range(_SWEEPS):
            neighbours = self.above if sweep % 2 == 0 else self.below
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                for node in row:
                    x[node] = _mean([x[other] for other in neighbours[node]], x[node])
                _spread(row, x, self.widths)
        return x


def lay_out(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out a graph without cycles.

    Args:
        sizes: width and height of each node.
        edges: producer and consumer of each edge.
    """
    layers = _Layers(sizes, edges)
    layers.sort()
    x = layers.columns()
    left = min((x[node] - layers.widths[node] / 2 for node in range(len(x))), default=0.0) - _GAP
    tops: list[float] = []
    top = _GAP
    for row in layers.rows:
        height = max(layers.heights[node] for node in row)
        tops.append(top + height / 2)
        top += height + _RANK_GAP
    centres = [(x[node] - left, tops[rank]) for node, rank in enumerate(layers.ranks)]
    paths = []
    for (producer, consumer), chain in zip(edges, layers.chains, strict=True):
        (x1, y1), (x2, y2) = centres[producer], centres[consumer]
        ends = (x1, y1 + layers.heights[producer] / 2), (x2, y2 - layers.heights[consumer] / 2)
        paths.append([ends[0], *(centres[bend] for bend in chain), ends[1]])
    right = max((x + layers.widths[node] / 2 for node, (x, _) in enumerate(centres)), default=0.0)
    count = len(sizes)
    return Layout(centres[:count], layers.ranks[:count], paths, layers.stubs, right + _GAP, top)


def _longest_bent(spans: Sequence[int], nodes: int) -> int:
    """Return how many ranks an edge may span to be bent around nodes: all bends together are to be bounded."""
    left = max(_BENDS_PER_NODE * nodes, _MAX_BENDS_OF_SMALL)
    counts = Counter(spans)
    for span in range(1, _LONGEST_EDGE + 1):
        left -= counts[span] * (span - 1)
        if left < 0:
            return span - 1
    return _LONGEST_EDGE


def _number(row: Sequence[int], place: list[int]) -> None:
    """Note the place of each node of a row."""
    for index, node in enumerate(row):
        place[node] = index


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the length of the longest path to each node; sources lie directly above their first consumer."""
    consumers: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for producer, consumer in edges:
        consumers[producer].append(consumer)
        waiting[consumer] += 1
    is_source = [not degree for degree in waiting]
    ranks = [0] * count
    ready = [node for node in range(count) if is_source[node]]
    for node in ready:
        for consumer in consumers[node]:
            ranks[consumer] = max(ranks[consumer], ranks[node] + 1)
            waiting[consumer] -= 1
            if not waiting[consumer]:
                ready.append(consumer)
    for node in range(count):
        if is_source[node] and consumers[node]:
            ranks[node] = min(ranks[consumer] for consumer in consumers[node]) - 1
    return ranks


def _spread(row: Sequence[int], x: list[float], widths: Sequence[float]) -> None:
    """Move the nodes of a row apart, half of each way to the left and half to the right, in their order."""
    rightmost: list[float] = []
    edge = float("-inf")
    for node in row:
        rightmost.append(max(x[node], edge + widths[node] / 2))
        edge = rightmost[-1] + widths[node] / 2 + _GAP
    leftmost: list[float] = []
    edge = float("inf")
    for node in reversed(row):
        leftmost.append(min(x[node], edge - widths[node] / 2))
        edge = leftmost[-1] - widths[node] / 2 - _GAP
    edge = float("-inf")
    for node, right, left in zip(row, rightmost, reversed(leftmost), strict=True):
        x[node] = max((right + left) / 2, edge + widths[node] / 2)
        edge = x[node] + widths[node] / 2 + _GAP


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
