"""The tree of an expression, and the orders it is walked in.

Every walk keeps its own stack: a tree may be nested deeper than Python's recursion limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.errors import ExpressionError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExpressionNode:
    """A node of the tree; equal to another when both print the same.

    Attributes:
        position: 0-based offset of the node's first token in `source`.
        source: the expression it was read from; empty for a node made by hand.
    """

    position: int = field(default=0, kw_only=True)
    source: str = field(default="", kw_only=True)

    @property
    def label(self) -> str:
        """The node's own text, without its children."""
        raise NotImplementedError

    @property
    def children(self) -> tuple["ExpressionNode", ...]:
        """The nodes below this one, left to right."""
        return ()

    def error(self, problem: str) -> ExpressionError:
        """Return an error whose caret stands under this node."""
        if self.source:
            return ExpressionError(self.source, self.position, problem)
        return ExpressionError(str(self), 0, problem)

    def __str__(self) -> str:
        return "".join(_pieces(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionNode) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberNode(ExpressionNode):
    """A literal number: int, float or complex."""

    value: int | float | complex

    @property
    def label(self) -> str:
        """The number as PNNX could have written it."""
        if isinstance(self.value, complex):
            return f"{self.value.real!r}{self.value.imag:+}j"
        return repr(self.value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstantNode(ExpressionNode):
    """None, True or False."""

    value: bool | None

    @property
    def label(self) -> str:
        """The constant's name."""
        return str(self.value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperandNode(ExpressionNode):
    """`@index`: the operator's input of that index."""

    index: int

    @property
    def label(self) -> str:
        """The operand as written."""
        return f"@{self.index}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallNode(ExpressionNode):
    """A function applied to arguments."""

    function: str
    arguments: tuple[ExpressionNode, ...]

    @property
    def label(self) -> str:
        """The function's name."""
        return self.function

    @property
    def children(self) -> tuple[ExpressionNode, ...]:
        """The arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListNode(ExpressionNode):
    """`[a,b,…]`."""

    items: tuple[ExpressionNode, ...]

    @property
    def label(self) -> str:
        """The list's length in brackets, which is what reverse Polish notation needs to know."""
        return f"[{len(self.items)}]"

    @property
    def children(self) -> tuple[ExpressionNode, ...]:
        """The items."""
        return self.items


_Step: TypeAlias = "ExpressionNode | str"


def _pieces(root: ExpressionNode) -> Iterator[str]:
    """Yield the text of a tree, piece by piece."""
    stack: list[_Step] = [root]
    while stack:
        step = stack.pop()
        if isinstance(step, str):
            yield step
            continue
        if not isinstance(step, CallNode | ListNode):
            yield step.label
            continue
        opening, closing = (f"{step.function}(", ")") if isinstance(step, CallNode) else ("[", "]")
        yield opening
        stack.append(closing)
        for index, child in reversed(list(enumerate(step.children))):
            stack.append(child)
            if index:
                stack.append(",")


def postorder(root: ExpressionNode) -> list[ExpressionNode]:
    """Return the nodes of a tree, children before their parent: the order to evaluate them in."""
    reverse: list[ExpressionNode] = []
    stack = [root]
    while stack:
        node = stack.pop()
        reverse.append(node)
        stack.extend(node.children)
    return reverse[::-1]


def reverse_polish(node: ExpressionNode) -> list[str]:
    """Return the reverse Polish form: `add(mul(@0,@1),@2)` is `["@0", "@1", "mul", "@2", "add"]`.

    A list of n items stands as `[n]` after them.
    """
    return [step.label for step in postorder(node)]


def inorder(root: ExpressionNode) -> list[str]:
    """Return the in-order walk: first child, node, other children.

    Operands are `NUM: index`, functions their names in capitals, anything else its own text:
    `add(mul(@0,@1),@2)` is `["NUM: 0", "MUL", "NUM: 1", "ADD", "NUM: 2"]`.
    """
    words: list[str] = []
    stack: list[_Step] = [root]
    while stack:
        step = stack.pop()
        if isinstance(step, str):
            words.append(step)
            continue
        first, rest = step.children[:1], step.children[1:]
        stack.extend(reversed(rest))
        stack.append(_word(step))
        stack.extend(first)
    return words


def _word(node: ExpressionNode) -> str:
    if isinstance(node, OperandNode):
        return f"NUM: {node.index}"
    return node.label.upper() if isinstance(node, CallNode) else node.label


def operands(node: ExpressionNode) -> frozenset[int]:
    """Return the indices of the operands an expression uses."""
    return frozenset(step.index for step in postorder(node) if isinstance(step, OperandNode))
