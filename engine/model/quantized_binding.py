"""Binding of PyTorch's quantized operators to int8 kernels.

Its operands carry integers with a scale and a zero point, which kernels do not support. If the file has both for each
of them, operands become float32 that is rounded to quantized values, convolutions and linear layers multiply
these integers, and kernels hand them on, as in a model that was quantized by `kuiper quantize`.

Numbers are rounded as in PyTorch: half to even, `quantize` and what it is called by after the zero point was added,
convolutions and linear layers before (`TensorScale.rounds_sum`). NaN becomes the largest number, as there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from engine.binding.bound_layer import BoundLayer
from engine.binding.requantization import RANGES
from engine.binding.results import PARTS
from engine.layers import BUILT_IN
from engine.model.operator import OUTPUT, RuntimeOperand, RuntimeOperator
from engine.model.quantized_layers import (
    CONTRACTIONS,
    POINTWISE,
    Integers,
    UnfitError,
    as_contraction,
    as_expression,
    as_float32,
    as_join,
    integers_of_quantize,
    integers_of_result,
    rounding_sums,
)
from engine.quantization.layer import Int8Layer
from engine.quantization.tensor_scale import TensorScale
from engine.spec import Value

_QUANTIZE = ("nn.quantized.Quantize", "torch.quantize_per_tensor", "aten::quantize_per_tensor")
_DEQUANTIZE = ("nn.quantized.DeQuantize", "torch.dequantize")
_SPREADS = ("prim::TupleUnpack", "prim::ListUnpack")
_NO_TENSORS = ("Tensor.size", "Tensor.dim", "Tensor.numel", "aten::size", "aten::dim")
_REAL_TYPES = ("f32", "i8", "u8")
"""Types that a file may declare for what a layer gives that is quantized as its input is."""
_KEEPS = frozenset(
    [
        *(
            "nn.ReLU",
            "F.relu",
            "nn.ReLU6",
            "F.relu6",
            "nn.Hardtanh",
            "F.hardtanh",
            "torch.clamp",
            "F.hardswish",
        ),
        *("nn.LeakyReLU", "F.leaky_relu", "nn.ELU", "F.elu", "nn.Hardswish", *RANGES, *PARTS),
        *("nn.MaxPool2d", "F.max_pool2d", "nn.AvgPool2d", "F.avg_pool2d", "nn.AdaptiveAvgPool2d"),
        *("F.adaptive_avg_pool2d", "torch.mean", "nn.Upsample", "F.upsample", "F.interpolate"),
        *("nn.Dropout", "nn.Dropout2d", "F.dropout", "F.dropout2d", "torch.flatten", "Tensor.reshape"),
        *("Tensor.view", "Tensor.permute", "torch.permute", "torch.transpose", "torch.squeeze", "torch.cat"),
        *("torch.unsqueeze", "Tensor.contiguous", "torch.clone", "Tensor.slice", "Tensor.select"),
        "nn.ChannelShuffle",
    ]
)
"""Types that give real numbers for real numbers: to be known where the file does not declare what they give."""

_MOVES = frozenset(
    [
        *("nn.ReLU", "F.relu", "nn.MaxPool2d", "F.max_pool2d", "torch.flatten", "Tensor.reshape", *PARTS),
        *(
            "nn.Dropout",
            "nn.Dropout2d",
            "F.dropout",
            "F.dropout2d",
            "Tensor.view",
            "Tensor.permute",
            "torch.cat",
        ),
        *("torch.permute", "torch.transpose", "torch.squeeze", "torch.unsqueeze", "Tensor.contiguous"),
        *("torch.clone", "Tensor.slice", "Tensor.select", "nn.ChannelShuffle"),
    ]
)
"""Types that give integers of their input: nothing is rounded, and kernels hand them on where the scale is the same."""

_Known: TypeAlias = "Integers | tuple[_Known | None, ...] | list[Integers] | None"
"""Quantization of an operand: of a tensor, a tuple of tensors, a list of equally quantized tensors, or none."""


@dataclass(frozen=True, slots=True)
class _Change:
    """An operator's new binding."""

    operator: RuntimeOperator
    layer: BoundLayer
    int8: Int8Layer | None
    scales: tuple[TensorScale | None, ...]


def compute_in_integers(order: Sequence[RuntimeOperator]) -> bool:
    """Bind a graph of PyTorch's quantized operators to layers that kernels know, if the whole of it can be.

    Args:
        order: the operators in the order in which they run, bound to their layers. Where only the reference layers of
            quantized tensors run one of them, none is changed.

    Returns:
        Whether they were changed.
    """
    if not any(operator.type in _QUANTIZE for operator in order):
        return False
    made = _Rebinding()
    try:
        for operator in order:
            if operator.layer is not None:
                made.take(operator, operator.layer)
    except UnfitError:
        return False
    for change in made.changes:
        change.layer.quantize(change.int8, change.scales)
        change.operator.layer = change.layer
    return True


@dataclass(slots=True)
class _Rebinding:
    """New bindings of a graph's operators, in execution order."""

    known: dict[str, _Known] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)

    def take(self, operator: RuntimeOperator, bound: BoundLayer) -> None:
        """Find what becomes of the next operator.

        Raises:
            UnfitError: only the layers of quantized tensors run it.
        """
        given = [self.known.get(operand.name) for operand in operator.inputs]
        is_own = BUILT_IN.find(operator.type) == bound.layer
        if operator.type in _QUANTIZE and is_own:
            self._bind(
                operator, as_float32(bound), None, integers_of_quantize(bound, self._numbers(operator, bound))
            )
        elif operator.type == "pnnx.Expression" and not operator.inputs:
            self.constants[operator.outputs[0].name] = bound.forward([])[0]
        elif all(item is None for item in given) or operator.type in (OUTPUT, *_NO_TENSORS):
            return
        elif bound.gathers and is_own:
            self.known[operator.outputs[0].name] = tuple(given)
        elif not bound.layer.takes_quantized:
            self._keep(operator, bound, given)
        elif not is_own:
            raise UnfitError
        elif operator.type in _SPREADS:
            self._spread(operator, bound, given[0])
        else:
            self._take_quantized(operator, bound, given)

    def _take_quantized(self, operator: RuntimeOperator, bound: BoundLayer, given: Sequence[_Known]) -> None:
        first = _first(given) if all(map(_is_whole, given)) else None
        if operator.type in CONTRACTIONS and first is not None:
            layer, int8 = as_contraction(bound, first)
            self._bind(operator, layer, int8, integers_of_result(bound, first))
        elif operator.type in POINTWISE and first is not None:
            self._bind(operator, as_expression(bound), None, integers_of_result(bound, first))
        elif operator.type == "nn.quantized.cat" and first is not None:
            self._bind(operator, as_join(bound), None, integers_of_result(bound, first))
        elif operator.type in _DEQUANTIZE and isinstance(given[0], Integers):
            self._bind(operator, as_float32(bound), None, None)
        else:
            raise UnfitError

    def _numbers(self, operator: RuntimeOperator, bound: BoundLayer) -> dict[str, Value]:
        """Return the arguments that are constant operands; None for those known only at run time."""
        return {
            name: self.constants.get(operator.inputs[place].name)
            for name, place in bound.operand_places.items()
            if place
        }

    def _bind(
        self, operator: RuntimeOperator, layer: BoundLayer, int8: Int8Layer | None, result: Integers | None
    ) -> None:
        (operand,) = operator.outputs
        self.known[operand.name] = result
        self.changes.append(_Change(operator, layer, int8, (None if result is None else result.scale,)))

    def _spread(self, operator: RuntimeOperator, bound: BoundLayer, given: _Known) -> None:
        """Take an operator that gives the members of a tuple or list, each as an output."""
        members = given * len(operator.outputs) if isinstance(given, list) else given
        if not isinstance(members, list | tuple) or len(members) != len(operator.outputs):
            raise UnfitError
        self._round(operator, bound, members)

    def _keep(self, operator: RuntimeOperator, bound: BoundLayer, given: Sequence[_Known]) -> None:
        """Bind an operator without quantization support: its output is quantized like its first input."""
        source = _first(given)
        if source is None:
            raise UnfitError
        if operator.type in RANGES:
            scale, above_lowest = RANGES[operator.type]
            source = replace(source, scale=replace(source.scale, scale=scale, zero_point=above_lowest))
        is_moved = operator.type in _MOVES or operator.params.get("mode") == "nearest"
        if not is_moved or not _is_alike(tuple(given), source):
            source = rounding_sums(source)
        if bound.gives_list:
            self.known[operator.outputs[0].name] = [source]
            return
        is_real = [_is_real(operator, operand) for operand in operator.outputs]
        self._round(operator, bound, [source if real else None for real in is_real])

    def _round(self, operator: RuntimeOperator, bound: BoundLayer, results: Sequence[_Known]) -> None:
        self.known.update(zip((operand.name for operand in operator.outputs), results, strict=True))
        scales = tuple(item.scale if isinstance(item, Integers) else None for item in results)
        self.changes.append(_Change(operator, bound, bound.int8, scales))


def _is_real(operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
    """Return whether an output of an operator on real numbers is of real numbers, too."""
    declared = None if operand.type is None else operand.type.dtype
    if declared in (None, "null"):
        if operator.type not in _KEEPS:
            raise UnfitError
        return True
    return declared in _REAL_TYPES


def _is_whole(item: _Known) -> bool:
    """Return whether an operand is quantized, and so are all members of a tuple."""
    return all(map(_is_whole, item)) if isinstance(item, tuple) else item is not None


def _is_alike(item: _Known, source: Integers) -> bool:
    """Return whether what is quantized has the scale and zero point of one tensor: else joining requantizes it."""
    if isinstance(item, tuple | list):
        return all(_is_alike(member, source) for member in item)
    return item is None or rounding_sums(item) == rounding_sums(source)


def _first(given: Sequence[_Known]) -> Integers | None:
    """Return how the first quantized input is quantized, among the members of tuples and lists as well."""
    for item in given:
        found = _first(item) if isinstance(item, tuple | list) else item
        if found is not None:
            return found
    return None
