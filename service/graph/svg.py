"""A described graph as an SVG picture."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from service.graph.drawing import Description, edges_of, node_label, operand_label
from service.graph.layout import Point, lay_out

_CHARACTER, _LINE, _PADDING = 6.7, 15.0, 9.0
_LONGEST = 44
"""Characters of the longest line of a box."""
_STUB = 16.0
"""Length of what is drawn of either end of a long edge."""
_COLOURS = ("#e8eef7", "#e9f5ea", "#fdf1dd", "#f6e8f3", "#e6f4f6", "#f3efe2", "#ece9f8", "#f9e9e6")
"""Light fills, by the first part of an operator's type."""


def draw_svg(description: Description, title: str) -> str:
    """Return a graph as SVG: a box for each operator, with its type and name, and a line for each operand."""
    nodes = description["nodes"]
    index = {node["name"]: place for place, node in enumerate(nodes)}
    labels = [[line[:_LONGEST] for line in node_label(node).split("\n")] for node in nodes]
    sizes = [
        (max(map(len, lines)) * _CHARACTER + 2 * _PADDING, len(lines) * _LINE + _PADDING) for lines in labels
    ]
    edges = list(edges_of(description))
    layout = lay_out(sizes, [(index[producer], index[consumer]) for producer, consumer, _ in edges])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" font-family="monospace" font-size="11">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for path, is_stub, edge in zip(layout.paths, layout.stubs, edges, strict=True):
        lines += _stubs(path, edge) if is_stub else _edge(path, operand_label(edge[2]))
    for node, size, centre, text in zip(nodes, sizes, layout.centres, labels, strict=True):
        lines += _box(centre, size, text, _COLOURS[zlib.crc32(node["type"].encode()) % len(_COLOURS)])
    return "\n".join([*lines, "</svg>", ""])


def _edge(path: Sequence[Point], label: str) -> Iterator[str]:
    (x, y), *rest = path
    curve = f"M{x:.1f},{y:.1f}"
    for next_x, next_y in rest:
        middle = (y + next_y) / 2
        curve += f" C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{next_y:.1f}"
        x, y = next_x, next_y
    yield f'<path d="{curve}" fill="none" stroke="#5b6470"><title>{escape(label)}</title></path>'
    yield f'<path d="M{x - 4:.1f},{y - 7:.1f} L{x:.1f},{y:.1f} L{x + 4:.1f},{y - 7:.1f}" fill="#5b6470"/>'
    (x1, y1), (x2, y2) = path[:2]
    beside, below = (3 * x1 + x2) / 4 + 4, y1 + min(14.0, (y2 - y1) / 2)
    yield f'<text x="{beside:.1f}" y="{below:.1f}" fill="#5b6470">{escape(label)}</text>'


def _stubs(path: Sequence[Point], edge: tuple[str, str, Mapping[str, Any]]) -> Iterator[str]:
    """Draw the two ends of a long edge, and at each the operator at the other."""
    (x1, y1), (x2, y2) = path[0], path[-1]
    producer, consumer, operand = edge
    for x, top, bottom, other, height in (
        (x1, y1, y1 + _STUB, f"to {consumer}", y1 + _STUB),
        (x2, y2 - _STUB, y2, f"from {producer}", y2 - _STUB + 8),
    ):
        yield (
            f'<path d="M{x:.1f},{top:.1f} L{x:.1f},{bottom:.1f}" fill="none" stroke="#5b6470" '
            f'stroke-dasharray="3 2"><title>{escape(operand_label(operand))}</title></path>'
        )
        label = escape(f"{operand['name']} {other}"[:_LONGEST])
        yield f'<text x="{x + 4:.1f}" y="{height:.1f}" fill="#5b6470">{label}</text>'


def _box(centre: Point, size: Point, lines: Sequence[str], fill: str) -> Iterator[str]:
    (x, y), (width, height) = centre, size
    left, top = x - width / 2, y - height / 2
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" fill="{fill}" '
        'stroke="#39424e"/>'
    )
    for place, line in enumerate(lines):
        weight = ' font-weight="bold"' if place == 0 else ""
        baseline = top + _PADDING / 2 + (place + 0.75) * _LINE
        yield f'<text x="{x:.1f}" y="{baseline:.1f}" text-anchor="middle"{weight}>{escape(line)}</text>'
