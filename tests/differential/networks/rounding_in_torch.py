"""PyTorch computing in double precision with the operands of products rounded, to bfloat16 or to 8-bit integers.

A run may be given tensors of another: from each of these on, it goes on with that tensor. So what is compared is what
the other run made of the very same numbers, kernel by kernel: differences do not add up, and one that is found shows
where it arose. How much rounding to float32 explains is measured by a second run, in which what lies between such
tensors is off by that much; of integers, that is what goes the other way half-way between two of them.
"""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from engine import Quantization
from engine.dtypes import Array
from engine.quantization.scheme import Activation
from engine.quantization.tensor_scale import TensorScale
from tests.differential.networks.exported_code import ExportedCode, compute_in_double

_DISTURBANCE = 1e-6
"""By how much of itself a tensor of float32 may be off that a kernel keeps in registers."""
_FLOAT32 = 2.0**-24
_LARGEST_BFLOAT16 = torch.finfo(torch.bfloat16).max
_PRODUCTS: Mapping[Callable[..., Any], tuple[str, str]] = {
    torch.conv1d: ("input", "weight"),
    torch.conv2d: ("input", "weight"),
    torch.conv_transpose1d: ("input", "weight"),
    torch.conv_transpose2d: ("input", "weight"),
    torch.nn.functional.linear: ("input", "weight"),
    torch.matmul: ("input", "other"),
    torch.bmm: ("input", "mat2"),
}
"""Functions that multiply, and what they call their two operands, which come first."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """What is rounded in a run.

    Attributes:
        products: operand -> how the operands of the product are rounded that gives it: "bf16", "static", "dynamic".
        input_scales: the same operand -> the scale of the product's input, where that is static.
        scales: operand -> the integers that it is rounded to, whoever reads it.
    """

    products: Mapping[str, str] = field(default_factory=dict)
    input_scales: Mapping[str, TensorScale] = field(default_factory=dict)
    scales: Mapping[str, TensorScale] = field(default_factory=dict)


def integer_rounding(quantization: Quantization, graph: Any) -> Rounding:
    """Return what a quantization rounds in a graph."""
    products, input_scales = {}, {}
    for operator in graph.operators:
        activation = quantization.layers.get(operator.name)
        if activation is not None:
            result = operator.outputs[0].name
            products[result] = activation.value
            if activation is Activation.STATIC:
                input_scales[result] = quantization.tensors[operator.inputs[0].name]
    inputs = {port.operand for port in graph.inputs}
    scales = {name: scale for name, scale in quantization.tensors.items() if name not in inputs}
    return Rounding(products, input_scales, scales)


@dataclass(slots=True)
class RoundedRun:
    """One run of the exporter's code, rounded.

    Attributes:
        rounding: what is rounded.
        given: operand -> the tensor that the run goes on with.
        disturbs: whether what lies between given tensors is off by what rounding to float32 explains.
        seen: operand -> what the run made of each given tensor, before it was rounded to integers.
    """

    rounding: Rounding
    given: Mapping[str, Array] = field(default_factory=dict)
    disturbs: bool = False
    seen: dict[str, torch.Tensor] = field(default_factory=dict)

    def run(self, code: ExportedCode, inputs: Sequence[Array]) -> list[Array]:
        """Run the code; returns its outputs, float64."""
        torch.manual_seed(1)
        return code.run(inputs, self._step)

    def _step(self, names: tuple[str, ...], compute: Callable[[], Any]) -> Any:
        how = self.rounding.products.get(names[0])
        with _Products(how, self.rounding.input_scales.get(names[0]), self.disturbs):
            value = compute_in_double(names, compute)
        if len(names) == 1:
            return self._finished(names[0], value)
        return tuple(self._finished(name, part) for name, part in zip(names, value, strict=True))

    def _finished(self, name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
            return value
        value = value.detach()  # it may be a parameter
        if self.disturbs:
            value = value * (1 + _DISTURBANCE * _signs(value))
        if name in self.given:
            self.seen[name] = value
            return torch.from_numpy(self.given[name]).double()
        scale = self.rounding.scales.get(name)
        return value if scale is None else real(integers(value, scale), scale)


class _Products(TorchFunctionMode):
    """Rounds the operands of the products of a statement."""

    def __init__(self, how: str | None, scale: TensorScale | None, disturbs: bool) -> None:
        super().__init__()
        self._how, self._scale, self._disturbs = how, scale, disturbs

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        names = _PRODUCTS.get(func)
        if func is torch.nn.functional.interpolate and self._disturbs:
            return _disturbed_places(func(*args, **kwargs))
        if names is None:
            return func(*args, **kwargs)
        operands = [args[place] if place < len(args) else kwargs.pop(names[place]) for place in (0, 1)]
        rest = args[2:]
        left, right = self._rounded(*operands)
        result = func(left, right, *rest, **kwargs)
        if not self._disturbs:
            return result
        terms = right[0].numel() if names[1] == "weight" else left.shape[-1]
        positive = [abs(item) if isinstance(item, torch.Tensor) else item for item in rest]
        sizes = func(abs(left), abs(right), *positive, **kwargs)
        return result + terms**0.5 * _FLOAT32 * sizes * _signs(result)

    def _rounded(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self._how == "bf16":
            return bfloat16(left), bfloat16(right)
        if self._how is None:
            return left, right
        weight = integer_weights(right)
        if self._scale is not None:
            return real(integers(left.float(), self._scale), self._scale), weight
        return integer_rows(left), weight


def bfloat16(value: torch.Tensor) -> torch.Tensor:
    """Return numbers rounded to bfloat16, those beyond the largest one as that one, in double precision."""
    finite = value.float().clamp(-_LARGEST_BFLOAT16, _LARGEST_BFLOAT16).bfloat16().double()
    return torch.where(torch.isinf(value), value, finite)


def integers(value: torch.Tensor, scale: TensorScale) -> torch.Tensor:
    """Return the integers, 0 to 255, that stand for numbers: value / scale, rounded half to even, + zero point."""
    if value.dtype == torch.float32:  # as documented, each operation rounded once
        steps = value * (torch.tensor(1.0) / torch.tensor(scale.scale, dtype=torch.float32))
    else:
        steps = value / float(torch.tensor(scale.scale, dtype=torch.float32))
    return torch.round(steps.double()).clamp(-scale.zero_point, 255 - scale.zero_point) + scale.zero_point


def real(whole: torch.Tensor, scale: TensorScale) -> torch.Tensor:
    """Return what integers stand for, in double precision."""
    return (whole - scale.zero_point) * float(torch.tensor(scale.scale, dtype=torch.float32))


def integer_weights(weight: torch.Tensor) -> torch.Tensor:
    """Return weights rounded to integers of -127 to 127 with a scale for each filter, in double precision."""
    flat = weight.float().flatten(1)
    scales = (flat.abs().amax(1, keepdim=True) / 127).clamp(1e-30)
    return (torch.round(flat / scales).double() * scales.double()).reshape(weight.shape)


def integer_rows(rows: torch.Tensor) -> torch.Tensor:
    """Return rows rounded to integers of -127 to 127 with a scale for each, in double precision."""
    x = rows.float()
    magnitude = x.abs().amax(-1, keepdim=True).clamp(1e-30, 1e30)
    # a number over a tensor is the number times its reciprocal to PyTorch, which rounds twice
    steps = torch.round((x * torch.div(torch.tensor(127.0), magnitude)).clamp(-127, 127))
    return steps.double() * magnitude.double() / 127


def _disturbed_places(resized: torch.Tensor) -> torch.Tensor:
    """Return a picture as if places between pixels were off by what float32 rounds the largest of them."""
    share = 2 * _FLOAT32 * max(resized.shape[2:])
    return resized + share * float(resized.abs().max()) * _signs(resized)


def _signs(like: torch.Tensor) -> torch.Tensor:
    return torch.randint(0, 2, like.shape, dtype=torch.float64) * 2 - 1
