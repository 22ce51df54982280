"""The table of families."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tests.differential.drawing import Drawing

Grow: TypeAlias = Callable[[Drawing, str], None]
"""Adds operators to a drawing that read an operand of it."""


@dataclass(frozen=True, slots=True)
class Family:
    """Operators that are drawn alike.

    Attributes:
        grow: adds some.
        ranks: ranks of operands that they read.
        weight: how often they are drawn.
    """

    grow: Grow
    ranks: tuple[int, ...]
    weight: int


FAMILIES: list[Family] = []
"""All families, in the order in which they are registered: a seed chooses among them by place."""

ANY = (1, 2, 3, 4, 5)


def family(*ranks: int, weight: int = 2) -> Callable[[Grow], Grow]:
    """Register a family that reads operands of some ranks, of any by default."""

    def register(grow: Grow) -> Grow:
        FAMILIES.append(Family(grow, ranks or ANY, weight))
        return grow

    return register
