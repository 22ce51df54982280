"""Which kernels the rules of selection choose."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from engine.compiler.graph import Node
from engine.compiler.selection import RULES, Selector

Selections = Counter[tuple[str, str]]
"""(kind of node, kind of kernel) -> how often the rule of the former chose the latter."""


@contextmanager
def counted(found: Selections) -> Iterator[None]:
    """Count the kernels that rules choose inside."""

    def watched(rule: Callable[[Selector, Any], None]) -> Callable[[Selector, Any], None]:
        def choose(selector: Selector, node: Node) -> None:
            first = len(selector.calls)
            rule(selector, node)
            for call in selector.calls[first:]:
                found[type(node).__name__, _kind(call.kernel)] += 1

        return choose

    with patch.dict(RULES, {kind: watched(rule) for kind, rule in RULES.items()}):
        yield


def _kind(kernel: object) -> str:
    """Name a kernel, and whether it stages its input, which makes another one of it."""
    return type(kernel).__name__ + (" (staged)" if getattr(kernel, "stage", None) else "")
