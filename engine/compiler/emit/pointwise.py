"""Pointwise expressions: operations on each element, in a kernel of their own or in the epilogue of another.

An expression is a tree of frozen nodes, so that kernels that hold one can be compared. `Leaf(0)` is the value that a
kernel has just computed, where it ends one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.compiler.emit import activations, vector_math
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue


@dataclass(frozen=True, slots=True)
class Leaf:
    """An operand, by its place."""

    place: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Numbers are equal where they are the same in memory: NaN is, 0 and -0 are not."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.value.hex() == other.value.hex()

    def __hash__(self) -> int:
        return hash(self.value.hex())


ZERO = Literal(0.0)


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of `FUNCTIONS` applied to expressions."""

    function: str
    arguments: tuple["PointwiseExpression", ...]


MAX_NODES = 64
"""Nodes of the largest expression that is compiled: each is an instruction or more."""

PointwiseExpression: TypeAlias = Leaf | Literal | Apply

FUNCTIONS: dict[str, Callable[..., IRValue]] = {
    "add": Emitter.fadd,
    "sub": Emitter.fsub,
    "mul": Emitter.fmul,
    "div": Emitter.fdiv,
    **vector_math.FUNCTIONS,
    **activations.FUNCTIONS,
}
"""Name -> what writes it, given the emitter and the arguments."""


def apply(function: str, *arguments: "PointwiseExpression | float") -> Apply:
    """Return a function applied to expressions and numbers."""
    return Apply(function, tuple(Literal(float(a)) if isinstance(a, int | float) else a for a in arguments))


def size(expression: PointwiseExpression) -> int:
    """Return how many nodes an expression has."""
    return 1 + sum(map(size, expression.arguments)) if isinstance(expression, Apply) else 1


_SHORT = {
    *("abs", "add", "ceil", "clamp", "eq", "floor", "ge", "gt", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"),
    *("le", "leaky_relu", "lt", "maximum", "minimum", "mul", "ne", "neg", "relu", "relu6", "round", "square", "sub"),
    *("threshold", "trunc", "where"),
}  # fmt: skip
"""Functions that take a few instructions."""


def is_long(expression: PointwiseExpression) -> bool:
    """Return whether the code of an expression is long, as that of polynomials is: then it is written in a loop."""
    if not isinstance(expression, Apply):
        return False
    return expression.function not in _SHORT or any(map(is_long, expression.arguments))


def substitute(expression: PointwiseExpression, leaves: Sequence[PointwiseExpression]) -> PointwiseExpression:
    """Return the expression with each leaf replaced by the one at its place."""
    if isinstance(expression, Leaf):
        return leaves[expression.place]
    if isinstance(expression, Literal):
        return expression
    return Apply(expression.function, tuple(substitute(a, leaves) for a in expression.arguments))


def emit(e: Emitter, expression: PointwiseExpression, leaves: Sequence[IRValue]) -> IRValue:
    """Write an expression over the values of its leaves, all vectors or all scalars; equal parts only once."""
    known: dict[PointwiseExpression, IRValue] = {}

    def value(node: PointwiseExpression) -> IRValue:
        if node not in known:
            if isinstance(node, Leaf):
                known[node] = leaves[node.place]
            elif isinstance(node, Literal):
                known[node] = e.like(leaves[0], node.value)
            else:
                known[node] = FUNCTIONS[node.function](e, *map(value, node.arguments))
        return known[node]

    return value(expression)
