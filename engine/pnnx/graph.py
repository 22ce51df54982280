"""A whole model as its files give it, and how to change it: find, insert and remove operators.

graph = read("model.pnnx.param", "model.pnnx.bin")
graph.insert_operator_after("conv1", Operator("nn.ReLU", "relu1"))
write(graph, "changed.pnnx.param", "changed.pnnx.bin")
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from engine.errors import GraphError, describe_problem
from engine.pnnx.model import Operator
from engine.pnnx.tensor_type import TensorType


@dataclass
class Graph:
    """A whole model.

    Attributes:
        operators: in file order.
        operands: every operand by name, in order of first appearance; None where the file gives no type.
    """

    operators: list[Operator] = field(default_factory=list)
    operands: dict[str, TensorType | None] = field(default_factory=dict)

    def get_operator(self, name: str) -> Operator:
        """Return the operator of a name.

        Raises:
            GraphError: there is none.
        """
        for operator in self.operators:
            if operator.name == name:
                return operator
        names = [operator.name for operator in self.operators]
        near = get_close_matches(name, names, n=1)
        raise GraphError(
            describe_problem(f"operator {name!r}", "is not in the graph", repr(near[0]) if near else None)
        )

    def get_consumers(self, operand: str) -> list[Operator]:
        """Return the operators that take an operand, in file order; each once."""
        return [operator for operator in self.operators if operand in operator.inputs]

    def insert_operator_before(
        self, name: str, operator: Operator, *, operand: str | None = None, type: TensorType | None = None
    ) -> Operator:
        """Put an operator in front of another, in the file and, where it has no operands yet, in the data's way.

        One without operands takes what the other took, and the other takes what it gives, a new operand. One that names
        its operands keeps them, and only its place in the file is set.

        Args:
            name: the operator to put it in front of.
            operator: the new one.
            operand: which input of the other is meant; needed where it has several.
            type: type of the new operand; None for undeclared.

        Returns:
            The new operator.

        Raises:
            GraphError: there is no operator `name`, the new one's name is taken, `operand` is no input of the other,
                or not given where there are several; the graph is then as it was.
        """
        other = self.get_operator(name)
        if operator.inputs or operator.outputs:
            return self._place(operator, other, 0, type)
        source = _choose(other, "input", other.inputs, operand)
        self._check_name(operator)
        operator.inputs, operator.outputs = [source], [self._new_operand()]
        _replace(other, source, operator.outputs[0])
        return self._place(operator, other, 0, type)

    def insert_operator_after(
        self, name: str, operator: Operator, *, operand: str | None = None, type: TensorType | None = None
    ) -> Operator:
        """Put an operator behind another, in the file and, where it has no operands yet, in the data's way.

        One without operands takes what the other gives, and all that took that take what it gives, a new operand. One
        that names its operands keeps them, and only its place in the file is set.

        Args:
            name: the operator to put it behind.
            operator: the new one.
            operand: which output of the other is meant; needed where it has several.
            type: type of the new operand; None for undeclared.

        Returns:
            The new operator.

        Raises:
            GraphError: as `insert_operator_before`, for outputs.
        """
        other = self.get_operator(name)
        if operator.inputs or operator.outputs:
            return self._place(operator, other, 1, type)
        source = _choose(other, "output", other.outputs, operand)
        self._check_name(operator)
        result = self._new_operand()
        for consumer in self.get_consumers(source):
            _replace(consumer, source, result)
        operator.inputs, operator.outputs = [source], [result]
        return self._place(operator, other, 1, type)

    def remove_operator(self, name: str) -> Operator:
        """Take an operator out; what took its output takes its input instead.

        Returns:
            The operator.

        Raises:
            GraphError: there is none, or others take what it gives and it has not one input and one output; the graph
                is then as it was.
        """
        operator = self.get_operator(name)
        used = [operand for operand in operator.outputs if self.get_consumers(operand)]
        if used and (len(set(operator.inputs)) != 1 or len(operator.outputs) != 1):
            count = f"{len(set(operator.inputs))} inputs and {len(operator.outputs)} outputs"
            takers = ", ".join(repr(consumer.name) for consumer in self.get_consumers(used[0])[:3])
            raise GraphError(
                describe_problem(
                    f"operator {name!r}", f"has {count}, and {takers} takes {used[0]!r}", "one of each"
                )
            )
        for operand in used:
            for consumer in self.get_consumers(operand):
                _replace(consumer, operand, operator.inputs[0])
        self.operators = [other for other in self.operators if other is not operator]
        for operand in operator.outputs:
            self.operands.pop(operand, None)
        return operator

    def _place(self, operator: Operator, other: Operator, offset: int, type: TensorType | None) -> Operator:
        self._check_name(operator)
        taken = [
            operand for each in self.operators for operand in each.outputs if operand in operator.outputs
        ]
        if taken:
            raise GraphError(f"operator {operator.name!r}: operand {taken[0]!r} has a producer already")
        index = next(place for place, each in enumerate(self.operators) if each is other)
        self.operators.insert(index + offset, operator)
        for operand in operator.outputs:
            self.operands.setdefault(operand, type)
        return operator

    def _check_name(self, operator: Operator) -> None:
        if any(operator.name == other.name for other in self.operators):
            raise GraphError(f"operator {operator.name!r}: the graph has one of that name")

    def _new_operand(self) -> str:
        """Return a name for an operand: a number, as the exporter gives, that none has."""
        numbers = [
            int(name) for name in self.operands if name.isascii() and name.isdecimal() and len(name) < 10
        ]
        return str(max(numbers, default=-1) + 1)


def _choose(operator: Operator, what: str, operands: Sequence[str], wanted: str | None) -> str:
    distinct = list(dict.fromkeys(operands))
    if wanted is None and len(distinct) == 1:
        return distinct[0]
    if wanted in distinct:
        return wanted
    names = ", ".join(map(repr, distinct)) or "none"
    problem = f"has {len(distinct)} {what}s" if wanted is None else f"has no {what} {wanted!r}"
    raise GraphError(
        describe_problem(f"operator {operator.name!r}", problem, f"operand to be one of {names}")
    )


def _replace(operator: Operator, old: str, new: str) -> None:
    """Have an operator take another operand, wherever it took one."""
    operator.inputs = [new if operand == old else operand for operand in operator.inputs]
    operator.input_names = {
        key: new if operand == old else operand for key, operand in operator.input_names.items()
    }
