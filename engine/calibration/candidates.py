"""Layers of a graph that support int8."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.model.int8_binding import LINEARS, may_be_int8
from engine.model.operator import RuntimeOperator
from engine.quantization.scheme import Activation
from engine.quantization.weights import MAX_TERMS

_DYNAMIC_RANK = 3
"""Rank from which on the rows of a linear layer's input are tokens, each with a scale of its own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layer that can be computed in integers.

    Attributes:
        operator: the operator.
        activation: source of its input's scale.
    """

    operator: RuntimeOperator
    activation: Activation

    @property
    def input(self) -> str:
        """The operand that it multiplies."""
        return self.operator.inputs[0].name


def find_candidates(order: Iterable[RuntimeOperator], ranks: Mapping[str, int]) -> list[Candidate]:
    """Return the layers that can be computed in integers, in execution order.

    Args:
        order: the operators, bound.
        ranks: operand -> number of its axes.
    """
    found = []
    for operator in order:
        if operator.layer is None or not may_be_int8(operator):
            continue
        if operator.layer.arguments["weight"][0].size > MAX_TERMS:
            continue
        rank = ranks.get(operator.inputs[0].name, 0)
        is_dynamic = operator.type in LINEARS and rank >= _DYNAMIC_RANK
        found.append(Candidate(operator, Activation.DYNAMIC if is_dynamic else Activation.STATIC))
    return found
