"""Tree -> value, through a flat program that is made once and run often."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from engine.dtypes import Array
from engine.expression.ast import (
    CallNode,
    ConstantNode,
    ExpressionNode,
    ListNode,
    NumberNode,
    OperandNode,
    operands,
    postorder,
)
from engine.expression.functions import FUNCTIONS, unknown_function
from engine.expression.parser import parse
from engine.spec import UNKNOWN, Spec, Value

Stack: TypeAlias = list[Any]


class _Load:
    """Push an operand."""

    def __init__(self, node: OperandNode) -> None:
        self._node = node
        self._index = node.index

    def evaluate(self, stack: Stack, given: Sequence[Any]) -> None:
        try:
            stack.append(given[self._index])
        except IndexError:
            count = f"{len(given)} operand{'s' if len(given) != 1 else ''}"
            raise self._node.error(
                f"{self._node.label} does not exist: the expression was given {count}"
            ) from None

    infer = evaluate


class _Push:
    """Push a literal."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def evaluate(self, stack: Stack, _given: Sequence[Any]) -> None:
        stack.append(self._value)

    infer = evaluate


class _Gather:
    """Replace the topmost values by a tuple of them."""

    def __init__(self, node: ListNode) -> None:
        self._count = len(node.items)

    def evaluate(self, stack: Stack, _given: Sequence[Any]) -> None:
        start = len(stack) - self._count
        stack[start:] = [tuple(stack[start:])]

    infer = evaluate


class _Apply:
    """Replace the topmost values by what a function makes of them.

    The result may be written over an argument that is itself the result of a function: nothing else refers to it.
    """

    def __init__(self, node: CallNode) -> None:
        function = FUNCTIONS.get(node.function)
        if function is None:
            raise node.error(unknown_function(node.function))
        if not function.takes(len(node.arguments)):
            raise node.error(function.wrong_count(len(node.arguments)))
        self._node = node
        self._count = len(node.arguments)
        self._evaluate = function.evaluate
        self._infer = function.infer
        calls = [index for index, argument in enumerate(node.arguments) if isinstance(argument, CallNode)]
        self._temporaries = calls if function.elementwise else []

    def evaluate(self, stack: Stack, _given: Sequence[Any]) -> None:
        arguments = stack[-self._count :]
        del stack[-self._count :]
        try:
            if self._temporaries:
                stack.append(self._evaluate(*arguments, self._scratch(arguments)))
            else:
                stack.append(self._evaluate(*arguments))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self._node.error(str(error)) from error

    def infer(self, stack: Stack, _given: Sequence[Any]) -> None:
        arguments = stack[-self._count :]
        del stack[-self._count :]
        if any(argument is UNKNOWN for argument in arguments):
            stack.append(UNKNOWN)
            return
        try:
            stack.append(self._infer(*arguments))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self._node.error(str(error)) from error

    def _scratch(self, arguments: Stack) -> Array | None:
        """Return the largest intermediate array among the arguments."""
        largest = None
        for index in self._temporaries:
            candidate = arguments[index]
            if isinstance(candidate, np.ndarray) and (largest is None or candidate.size > largest.size):
                largest = candidate
        return largest


_Step: TypeAlias = _Load | _Push | _Gather | _Apply


def _step(node: ExpressionNode) -> _Step:
    if isinstance(node, CallNode):
        return _Apply(node)
    if isinstance(node, ListNode):
        return _Gather(node)
    if isinstance(node, OperandNode):
        return _Load(node)
    if isinstance(node, NumberNode | ConstantNode):
        return _Push(node.value)
    raise TypeError(f"{type(node).__name__} is not a node of an expression")


class Expression:
    """An expression ready to run. Immutable, and safe to run from several threads at once.

    Attributes:
        root: the tree it was made from.
        operands: indices of the operands it uses.
    """

    def __init__(self, root: ExpressionNode) -> None:
        steps = [_step(node) for node in postorder(root)]
        self.root = root
        self.operands = operands(root)
        self._evaluations: list[Callable[[Stack, Sequence[Any]], None]] = [step.evaluate for step in steps]
        self._inferences: list[Callable[[Stack, Sequence[Any]], None]] = [step.infer for step in steps]

    @property
    def gathers(self) -> bool:
        """Whether it only makes a list of operands."""
        root = self.root
        return isinstance(root, ListNode) and all(isinstance(item, OperandNode) for item in root.items)

    def evaluate(self, operands: Sequence[Value]) -> Value:
        """Compute the expression over values.

        Floating-point signals are left to the caller's `np.errstate`.

        Args:
            operands: `@0`, `@1` …; arrays are tensors, arrays without dimensions included.

        Returns:
            A new array, a number, None, or for a list a tuple; for a bare `@i` the operand itself.

        Raises:
            ExpressionError: an operand is missing, shapes do not broadcast, a function is not defined for a dtype …
        """
        stack: Stack = []
        for step in self._evaluations:
            step(stack, operands)
        value: Value = stack.pop()
        return value

    def steps(self, operands: Sequence[Value]) -> Iterator[tuple[ExpressionNode, Sequence[Value]]]:
        """Compute the expression as `evaluate` does, and yield after each step its node and the values on the stack.

        A step may write over arrays of those before: what is yielded is to be looked at before the next step is taken.

        Args:
            operands: as of `evaluate`.

        Raises:
            ExpressionError: as `evaluate`, at the step that fails.
        """
        stack: Stack = []
        for node, step in zip(postorder(self.root), self._evaluations, strict=True):
            step(stack, operands)
            yield node, stack

    def infer(self, operands: Sequence[Spec]) -> Spec:
        """Compute the expression over specs: numbers are computed, tensors give shape and dtype.

        Whatever needs an UNKNOWN operand, or the elements of a tensor, is UNKNOWN.

        Raises:
            ExpressionError: as `evaluate`.
        """
        stack: Stack = []
        for step in self._inferences:
            step(stack, operands)
        spec: Spec = stack.pop()
        return spec

    def __str__(self) -> str:
        return str(self.root)

    def __repr__(self) -> str:
        return f"<Expression {self.root}>"


def compile_expression(root: ExpressionNode) -> Expression:
    """Make a tree ready to run."""
    return Expression(root)


def compile_source(source: str) -> Expression:
    """Read an expression and make it ready to run.

    Raises:
        ExpressionError: the text is no expression.
    """
    return Expression(parse(source))


def evaluate(node: ExpressionNode, operands: Sequence[Value]) -> Value:
    """Compute an expression once, ignoring floating-point signals; see `Expression.evaluate`."""
    with np.errstate(all="ignore"):
        return Expression(node).evaluate(operands)


def infer(node: ExpressionNode, operands: Sequence[Spec]) -> Spec:
    """Compute an expression once over specs; see `Expression.infer`."""
    with np.errstate(all="ignore"):
        return Expression(node).infer(operands)
