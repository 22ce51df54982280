"""Which layers of a graph can be computed in integers, and which tensors need scales for that."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.int8_binding import LINEARS, may_be_int8
from engine.operator import INPUT, RuntimeOperand, RuntimeOperator
from engine.quantization.scheme import Activation
from engine.quantization.weights import MOST_TERMS

_DYNAMIC_RANK = 3
"""Rank from which on the rows of a linear layer's input are tokens, each with a scale of its own."""
_KEEPS_SCALE = frozenset(
    (
        *("nn.MaxPool1d", "nn.MaxPool2d", "F.max_pool1d", "F.max_pool2d"),
        *("torch.cat", "torch.chunk", "torch.split", "torch.flatten", "Tensor.slice", "Tensor.select"),
        *("nn.Upsample", "F.upsample", "F.interpolate", "nn.UpsamplingNearest2d", "nn.ChannelShuffle"),
    )
)
"""Types whose results lie between their inputs' elements: the same integers can stand for both."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layer that can be computed in integers.

    Attributes:
        operator: the operator.
        activation: where the scale of its input comes from.
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
        if operator.layer.arguments["weight"][0].size > MOST_TERMS:
            continue
        rank = ranks.get(operator.inputs[0].name, 0)
        is_dynamic = operator.type in LINEARS and rank >= _DYNAMIC_RANK
        found.append(Candidate(operator, Activation.DYNAMIC if is_dynamic else Activation.STATIC))
    return found


def scale_groups(candidates: Sequence[Candidate], floats: Collection[str]) -> list[list[str]]:
    """Return the operands that need a scale for these layers, those that share one together.

    Besides the inputs of layers, these are the tensors that such an input is put together or chosen from, by
    concatenation or maximum pooling: with the same scale, integers flow through unchanged.

    Args:
        candidates: the layers.
        floats: the operands that are float32 tensors.
    """
    sharing = _Sharing(floats)
    for candidate in candidates:
        if candidate.activation is Activation.STATIC:
            sharing.add(candidate.operator.inputs[0])
    return sharing.groups()


class _Sharing:
    """Operands that share scales, as sets that are joined."""

    def __init__(self, floats: Collection[str]) -> None:
        self._floats = floats
        self._leader: dict[str, str] = {}

    def add(self, operand: RuntimeOperand) -> None:
        """Add an operand, and those that it is put together or chosen from."""
        if operand.name in self._leader:
            return
        self._leader[operand.name] = operand.name
        producer = operand.producer
        for source in producer.inputs if producer.type in _KEEPS_SCALE else ():
            if source.name in self._floats and source.producer.type != INPUT:
                self.add(source)
                self._leader[self._find(source.name)] = self._find(operand.name)

    def groups(self) -> list[list[str]]:
        """Return the sets."""
        groups: dict[str, list[str]] = {}
        for name in self._leader:
            groups.setdefault(self._find(name), []).append(name)
        return list(groups.values())

    def _find(self, name: str) -> str:
        while self._leader[name] != name:
            name = self._leader[name]
        return name
