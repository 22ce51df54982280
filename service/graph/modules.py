"""The modules of PyTorch that a graph's operators come from, as far as their names show, and which are shown open.

A module is known by its path: `layer1.0` has the operator `layer1.0.conv1`, and lies in `layer1`. The whole network is
the module with the empty path.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from service.graph.wiring import Wiring

Collapse = Literal["auto", "none", "all"]
"""Which modules are shown as one node: as many as keep a drawing readable, none, or all."""

_READABLE = 150
"""Operators from which on modules are shown as one node each, with `auto`."""
_SHOWN_AT_FIRST = 100
"""Maximum nodes of such a drawing, where closed modules can be that few."""
_DEEPEST = 16
"""Maximum parts of a module's path that are looked at."""
_OWN_TYPES = ("pnnx.Input", "pnnx.Output")
_RENAMED = re.compile(r"(\w+bn\d?d?|pnnx_unique)_\d+")
"""Names that the exporter gives a layer in place of its path: fused with a batch norm, or called twice."""


def modules_of(wiring: Wiring) -> list[str]:
    """Return the module of each operator.

    The names of functions that a module calls do not show the module: such an operator belongs where the last operator
    belongs whose result it takes. A layer that the exporter renamed (`convbn2d_3`) belongs where the layer belongs that
    takes its result, mostly its activation. The steps of a pipeline are the outermost modules.
    """
    takers = _modules_of_takers(wiring)
    last: dict[int, int] = {}
    for producer, consumer, _ in wiring.edges:
        last[consumer] = max(producer, last.get(consumer, -1))
    modules: list[str] = []
    for place, (full, its_type) in enumerate(zip(wiring.names, wiring.types, strict=True)):
        step, name = _parted(full, wiring)
        if its_type in _OWN_TYPES:
            modules.append(step)
        elif "." in name and not name.startswith(its_type):
            modules.append(_path(step, name))
        elif place in takers:
            modules.append(takers[place])
        elif (its_type.startswith("nn.") and not _RENAMED.fullmatch(name)) or place not in last:
            modules.append(step)
        else:
            modules.append(modules[last[place]])
    return modules


def _modules_of_takers(wiring: Wiring) -> dict[int, str]:
    """Return, by place, the module of the layer that takes the result of one that the exporter renamed."""
    first: dict[int, int] = {}
    for producer, consumer, _ in wiring.edges:
        first[producer] = min(consumer, first.get(producer, consumer))
    known: dict[int, str] = {}
    takers: dict[int, str] = {}
    for place in reversed(range(len(wiring.names))):
        full, its_type = wiring.names[place], wiring.types[place]
        step, name = _parted(full, wiring)
        if not its_type.startswith("nn."):
            continue
        if "." in name:
            known[place] = _path(step, name)
        elif _RENAMED.fullmatch(name) and first.get(place) in known:
            known[place] = takers[place] = known[first[place]]
    return takers


def _parted(full: str, wiring: Wiring) -> tuple[str, str]:
    """Return the step of a pipeline that an operator is of, empty for all other graphs, and its name there."""
    step, _, name = full.partition("/") if wiring.has_steps else ("", "", full)
    return step, name


def _path(step: str, name: str) -> str:
    """Return the module that an operator's name shows."""
    path = name.split(".")[:-1]
    return ".".join(([step, *path] if step else path)[:_DEEPEST])


def enclosing(module: str) -> Iterator[str]:
    """Yield the modules that a module lies in, outermost first, and the module itself; not the whole network."""
    end = module.find(".")
    while end >= 0:
        yield module[:end]
        end = module.find(".", end + 1)
    if module:
        yield module


def operator_counts(modules: Sequence[str]) -> dict[str, int]:
    """Return how many operators each module has, those of modules in it included; outer modules come first.

    Args:
        modules: the module of each operator.
    """
    counts = Counter(around for module in modules for around in enclosing(module))
    return {module: counts[module] for module in sorted(counts, key=lambda module: module.split("."))}


def open_modules(
    modules: Sequence[str], collapse: Collapse, expanded: Collection[str], collapsed: Collection[str]
) -> set[str]:
    """Return the modules whose contents are shown.

    Args:
        modules: the module of each operator.
        collapse: which are shown as one node if nothing else is said of them.
        expanded: modules that are open in any case.
        collapsed: others that are closed in any case.
    """
    known = operator_counts(modules)
    if collapse == "none" or (collapse == "auto" and len(modules) < _READABLE):
        opened = set(known)
    elif collapse == "all":
        opened = set()
    else:
        depth = _readable_depth(modules)
        opened = {module for module in known if module.count(".") < depth}
    return (opened - set(collapsed)) | (set(expanded) & known.keys())


def shown_module(module: str, opened: Collection[str]) -> str | None:
    """Return the outermost closed module that a module lies in, or is; None where all are open."""
    return next((around for around in enclosing(module) if around not in opened), None)


def _readable_depth(modules: Sequence[str]) -> int:
    """Return how deep modules can be open with few nodes to show: 0 where those of the network itself are closed."""
    paths = [list(enclosing(module)) for module in modules]
    depth, deepest = 0, max(map(len, paths), default=0)
    while depth < deepest:
        shown = {path[depth + 1] if len(path) > depth + 1 else place for place, path in enumerate(paths)}
        if len(shown) > _SHOWN_AT_FIRST:
            break
        depth += 1
    return depth
