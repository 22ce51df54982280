"""What random graphs are made of: one function per family of operators, each adds one or two to a drawing."""

from tests.differential.families import (
    arranging,
    attention,
    convolution,
    expression,
    movement,
    padding,
    pooling,
    sequence,
    unlowered,
)
from tests.differential.families.family import FAMILIES, Family, family

__all__ = [
    "FAMILIES",
    "Family",
    "arranging",
    "attention",
    "convolution",
    "expression",
    "family",
    "movement",
    "padding",
    "pooling",
    "sequence",
    "unlowered",
]
