"""A graph's drawing for pages that paint it themselves: where each operator or closed module is, and each line."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from service.graph.grouping import Group, group
from service.graph.layout import Layout, Point, lay_out
from service.graph.modules import Collapse, enclosing, modules_of, open_modules, operator_counts
from service.graph.wiring import Wiring

_SIZES: dict[str, Point] = {
    "operator": (168.0, 46.0),
    "module": (196.0, 58.0),
    "input": (152.0, 34.0),
    "output": (152.0, 34.0),
}
"""Width and height of each kind of node, in pixels. Text is fitted by who paints it."""
_PORTS = {"pnnx.Input": "input", "pnnx.Output": "output"}


def describe_layout(
    wiring: Wiring,
    collapse: Collapse = "auto",
    expanded: frozenset[str] = frozenset(),
    collapsed: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return where a graph is drawn, in pixels: no two nodes overlap, and each line runs down.

    Args:
        wiring: the graph's operators.
        collapse: which modules are one node each, if nothing else is said.
        expanded: modules that are open in any case.
        collapsed: others that are closed in any case.
    """
    modules = modules_of(wiring)
    opened = open_modules(modules, collapse, expanded, collapsed)
    groups = group(wiring, modules, opened)
    members: dict[Group, list[int]] = {}
    for place, its_group in enumerate(groups):
        members.setdefault(its_group, []).append(place)
    places = {its_group: place for place, its_group in enumerate(members)}
    nodes = [_node(its_group, inside, wiring, modules) for its_group, inside in members.items()]
    operands: dict[tuple[int, int], list[str]] = {}
    for producer, consumer, operand in wiring.edges:
        edge = places[groups[producer]], places[groups[consumer]]
        if edge[0] != edge[1]:
            operands.setdefault(edge, []).append(operand)
    layout = lay_out([_SIZES[node["kind"]] for node in nodes], list(operands))
    return {
        "width": round(layout.width, 1),
        "height": round(layout.height, 1),
        "nodes": _placed(nodes, layout),
        "edges": _edges(nodes, operands, layout),
        "modules": _modules(operator_counts(modules), opened),
    }


def _node(group: Group, inside: Sequence[int], wiring: Wiring, modules: Sequence[str]) -> dict[str, Any]:
    """Describe what one node stands for; a closed module of one operator is that operator."""
    operators = [wiring.names[place] for place in inside]
    name, part = group
    if len(inside) == 1:
        its_type = wiring.types[inside[0]]
        described = {"id": operators[0], "kind": _PORTS.get(its_type, "operator"), "name": operators[0]}
        return described | {"type": its_type, "module": modules[inside[0]], "operators": operators}
    suffix = f" {part + 1}" if part else ""
    return {
        "id": f"module {name}{suffix}",  # operators have no spaces in their names
        "kind": "module",
        "name": name,
        "type": "module",
        "module": name.rpartition(".")[0],
        "operators": operators,
    }


def _placed(nodes: Sequence[dict[str, Any]], layout: Layout) -> list[dict[str, Any]]:
    """Return nodes with their upper left corners, sizes and ranks."""
    placed = []
    for node, (x, y), rank in zip(nodes, layout.centres, layout.ranks, strict=True):
        width, height = _SIZES[node["kind"]]
        corner = {"x": round(x - width / 2, 1), "y": round(y - height / 2, 1)}
        placed.append(node | corner | {"width": width, "height": height, "rank": rank})
    return placed


def _edges(
    nodes: Sequence[dict[str, Any]], operands: Mapping[tuple[int, int], list[str]], layout: Layout
) -> list[dict[str, Any]]:
    return [
        {
            "source": nodes[producer]["id"],
            "target": nodes[consumer]["id"],
            "operand": names[0],
            "operands": names,
            "points": [[round(x, 1), round(y, 1)] for x, y in path],
            "stub": is_stub,
        }
        for ((producer, consumer), names), path, is_stub in zip(
            operands.items(), layout.paths, layout.stubs, strict=True
        )
    ]


def _modules(counts: Mapping[str, int], opened: Collection[str]) -> list[dict[str, Any]]:
    """Return all modules, outer ones first, with the number of their operators."""
    return [
        {
            "name": module,
            "parent": module.rpartition(".")[0],
            "operator_count": count,
            "open": all(around in opened for around in enclosing(module)),
        }
        for module, count in counts.items()
    ]
