"""Which operators of a graph are drawn as one node: those of a closed module, as far as no cycle comes of it.

Operators of a module may take results that others have made of the module's own. Drawn as one node, the module would
lead to itself; then it is drawn as several nodes, by how often the way to an operator has changed modules.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TypeAlias

from service.graph.modules import shown_module
from service.graph.wiring import Wiring

Group: TypeAlias = tuple[str, int]
"""A closed module, and which part of it where it is drawn as several; an operator's name and -1."""


def group(wiring: Wiring, modules: Sequence[str], opened: Collection[str]) -> list[Group]:
    """Return the group of each operator; edges between groups make no cycle.

    Args:
        wiring: the operators.
        modules: the module of each.
        opened: the modules whose contents are shown.
    """
    closed = [shown_module(module, opened) for module in modules]
    groups: list[Group] = [
        (name, -1) if module is None else (module, 0)
        for name, module in zip(wiring.names, closed, strict=True)
    ]
    edges = [(producer, consumer) for producer, consumer, _ in wiring.edges]
    cyclic = _cyclic(groups, edges)
    if not cyclic:
        return groups
    changes = [0] * len(groups)
    for producer, consumer in sorted(edges):  # producers come before their consumers
        if cyclic.get(groups[producer]) == cyclic.get(groups[consumer], -1):
            crosses = groups[producer] != groups[consumer]
            changes[consumer] = max(changes[consumer], changes[producer] + crosses)
    return [
        (name, changes[place]) if number >= 0 and (name, number) in cyclic else (name, number)
        for place, (name, number) in enumerate(groups)
    ]


def _cyclic(groups: Sequence[Group], edges: Iterable[tuple[int, int]]) -> dict[Group, int]:
    """Return the groups that lie on cycles, each with the number of its strongly connected component."""
    below: dict[Group, list[Group]] = {group: [] for group in groups}
    above: dict[Group, list[Group]] = {group: [] for group in groups}
    for producer, consumer in edges:
        upper, lower = groups[producer], groups[consumer]
        if upper != lower:
            below[upper].append(lower)
            above[lower].append(upper)
    # Kosaraju's algorithm: what reaches each other backwards from the last group that a walk has completed
    seen: set[Hashable] = set()
    completed = [node for start in below if start not in seen for node in _walk(start, below, seen)]
    seen = set()
    cyclic: dict[Group, int] = {}
    for number, start in enumerate(reversed(completed)):
        component = [] if start in seen else _walk(start, above, seen)
        if len(component) > 1:
            cyclic |= dict.fromkeys(component, number)
    return cyclic


def _walk(start: Group, following: dict[Group, list[Group]], seen: set[Hashable]) -> list[Group]:
    """Walk depth first through what was not seen before; return it, each group after all that it leads to."""
    seen.add(start)
    completed: list[Group] = []
    stack = [(start, iter(following[start]))]
    while stack:
        node, others = stack[-1]
        for other in others:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(following[other])))
                break
        else:
            stack.pop()
            completed.append(node)
    return completed
