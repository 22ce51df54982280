"""Context of a lowering rule: one operator, and its arguments as tensors of the compiler's graph or plain values."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from engine.compiler.graph import EXACT, FLOAT, Bounds, Constant, Node, Tensor
from engine.dtypes import Array
from engine.run.plan import Step
from engine.spec import QuantizedSpec, Spec, TensorSpec

OF_MASKS: Bounds = (-(1 << 11), 1 << 11)
"""Integers as they are in masks: their products are exact, and so are sums of some thousands."""


class LoweringContext:
    """One operator that is being lowered.

    Attributes:
        index: place of the operator in the plan.
        step: the operator's step.
        inputs: specs of its inputs.
        outputs: specs of its outputs.
        is_dynamic: whether the program has dynamic axes.
        bounds: bounds of outputs that are integers; what the rule sets it to.
    """

    def __init__(
        self,
        index: int,
        step: Step,
        inputs: list[Spec],
        outputs: list[Spec],
        tensor: Callable[[int], Tensor],
        constant: Callable[[int], Array | None],
        add: Callable[..., list[Tensor]],
        assume: Callable[[int, Bounds], bool],
        members: Callable[[int], list[int | None] | None],
        is_dynamic: bool,
    ) -> None:
        self.index = index
        self.step = step
        self.inputs = inputs
        self.outputs = outputs
        self._tensor = tensor
        self._constant = constant
        self._add = add
        self._assume = assume
        self._members = members
        self.is_dynamic = is_dynamic
        self.bounds: Bounds | None = None
        self._places = step.layer.operand_places
        self._arguments = {argument.name: argument for argument in step.layer.layer.arguments}

    @property
    def type(self) -> str:
        """PNNX type of the layer that runs the operator."""
        return self.step.layer.layer.type

    @property
    def operand_names(self) -> Collection[str]:
        """Names of the arguments that operands carry."""
        return self._places.keys()

    def spec(self, name: str) -> TensorSpec | None:
        """Return shape and dtype of a tensor argument, None for one that is no tensor."""
        if name in self._places:
            spec = self.inputs[self._places[name]]
            return spec if isinstance(spec, TensorSpec) else None
        value = self.step.layer.arguments.get(name)
        return TensorSpec(value.shape, value.dtype) if isinstance(value, np.ndarray) else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a float32 tensor argument, None for anything else."""
        spec = self.spec(name)
        return spec.shape if spec is not None and spec.dtype == FLOAT else None

    def value(self, name: str) -> Any:
        """Return an argument that is no tensor, or a constant array; None if it is known only at run time."""
        if name not in self._places:
            return self.step.layer.arguments.get(name)
        place = self._places[name]
        spec = self.inputs[place]
        argument = self._arguments[name]
        if isinstance(spec, TensorSpec):
            array = self._constant(self.step.inputs[place])
            return array if array is None or argument.takes_any_tensor else argument.convert(array)
        return argument.convert(spec)  # type: ignore[arg-type]  # a scalar's spec is the scalar

    def is_constant(self, name: str) -> bool:
        """Whether an argument is the same in every run."""
        place = self._places.get(name)
        if place is None or not isinstance(self.inputs[place], TensorSpec):
            return True
        return self._constant(self.step.inputs[place]) is not None

    def make_constant(self, array: Array) -> Tensor:
        """Return the tensor of an array that no input changes."""
        return constant_tensor(self._add, array)

    def add(self, node: Node, *shapes: tuple[int, ...]) -> list[Tensor]:
        """Put a node before the operator's own; returns its outputs, of the shapes given.

        For operators that take more than one node. A rule that leaves its operator to numpy may not have added any.
        """
        return self._add(node, *shapes)

    def tensor(self, name: str) -> Tensor:
        """Return a float32 tensor argument that an operand carries."""
        return self.operand(self._places[name])

    def operand(self, place: int) -> Tensor:
        """Return the float32 tensor of the operator's input at a place."""
        return self._tensor(self.step.inputs[place])

    def is_readable(self, place: int) -> bool:
        """Whether kernels read the operator's input at a place: float32, truth values, integers."""
        return is_readable(self.inputs[place])

    def reads(self, name: str) -> bool:
        """Whether an operand carries an argument that kernels read."""
        return name in self._places and self.is_readable(self._places[name])

    def members(self, name: str) -> list[Tensor | None] | None:
        """Return the tensors of a list that an operand carries, None for members that are none.

        None where they are not to be had, or kernels do not read them.
        """
        slots = self._members(self.step.inputs[self._places[name]])
        specs = self.inputs[self._places[name]]
        if slots is None or not isinstance(specs, tuple | list) or len(slots) != len(specs):
            return None
        pairs = list(zip(slots, specs, strict=True))
        if not all(s is None or is_readable(of) for s, of in pairs):
            return None
        return [None if slot is None else self._tensor(slot) for slot in slots]

    def assume(self, place: int, bounds: Bounds) -> bool:
        """Assume that an input of the graph is within bounds; otherwise the reference implementation runs.

        False where the operator's input at the place is no input of the graph.
        """
        return self._assume(self.step.inputs[place], bounds)

    def place(self, name: str) -> int:
        """Return the place, among the operator's inputs, of the operand that carries an argument."""
        return self._places[name]

    def is_float(self, place: int) -> bool:
        """Whether the operator's input at a place is a float32 tensor."""
        spec = self.inputs[place]
        return isinstance(spec, TensorSpec) and spec.dtype == FLOAT

    def has_operand(self, name: str) -> bool:
        """Whether an argument is a float32 tensor that an operand carries."""
        return name in self._places and self.is_float(self._places[name])


def constant_tensor(add: Callable[..., list[Tensor]], array: Array) -> Tensor:
    """Add the node of an array that no input changes; returns its tensor."""
    (tensor,) = add(Constant([], [], array=array), array.shape)
    tensor.dtype = array.dtype
    if array.dtype.kind in "biu" and array.size:
        least, largest = int(array.min()), int(array.max())
        tensor.bounds = (least, largest) if max(-least, largest) <= EXACT else None
    return tensor


def is_readable(spec: Spec) -> bool:
    """Return whether something is a tensor that kernels read, as float32; quantized ones they do not."""
    if not isinstance(spec, TensorSpec) or isinstance(spec, QuantizedSpec):
        return False
    return spec.dtype == FLOAT or spec.dtype.kind in "biu"


T = TypeVar("T")


def of_image(values: Sequence[T], of_rows: T) -> tuple[T, T]:
    """Return what holds for rows and columns, given for each spatial axis: a sequence is an image of one row."""
    return (of_rows, values[0]) if len(values) == 1 else (values[0], values[1])


LoweringRule: TypeAlias = Callable[[LoweringContext], Node | None]
"""Returns the node that does an operator's work, its outputs not made yet; None where numpy has to."""

RULES: dict[str, LoweringRule] = {}
"""PNNX type -> rule."""


READERS: set[LoweringRule] = set()
"""Rules of operators that take and give truth values and integers as well as float32."""


LAYER_RULES: dict[Callable[..., Any], LoweringRule] = {}
"""Function of a layer that is not the engine's own -> rule. Whatever takes the layer's place is not lowered by it."""


def lowers_layer(function: Callable[..., Any]) -> Callable[[LoweringRule], LoweringRule]:
    """Register the rule of a layer outside the engine, by the function that `@layer` registered."""

    def register(rule: LoweringRule) -> LoweringRule:
        LAYER_RULES[function] = rule
        return rule

    return register


def lowers(*types: str) -> Callable[[LoweringRule], LoweringRule]:
    """Register the rule of some of the engine's own operator types."""

    def register(rule: LoweringRule) -> LoweringRule:
        for name in types:
            RULES[name] = rule
        return rule

    return register


def reads_all(rule: LoweringRule) -> LoweringRule:
    """Declare a rule whose operators accept and return bools and integers as well as float32."""
    READERS.add(rule)
    return rule
