"""What a lowering rule sees: one operator, its arguments as tensors of the compiler's graph or plain values."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from engine.compiler.graph import Constant, Node, Tensor
from engine.dtypes import Array
from engine.plan import Step
from engine.spec import Spec, TensorSpec

FLOAT = np.dtype(np.float32)


class LoweringContext:
    """One operator that is being lowered.

    Attributes:
        index: place of the operator in the plan.
        step: the operator's step.
        inputs: what is known of its inputs.
        outputs: what is known of its outputs.
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
    ) -> None:
        self.index = index
        self.step = step
        self.inputs = inputs
        self.outputs = outputs
        self._tensor = tensor
        self._constant = constant
        self._add = add
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
        """Return an argument that is no tensor, or a constant array; None where only a run can tell it."""
        if name not in self._places:
            return self.step.layer.arguments.get(name)
        place = self._places[name]
        spec = self.inputs[place]
        if isinstance(spec, TensorSpec):
            return self._constant(self.step.inputs[place])
        return self._arguments[name].convert(spec)  # type: ignore[arg-type]  # a scalar's spec is the scalar

    def is_constant(self, name: str) -> bool:
        """Whether an argument is the same in every run."""
        place = self._places.get(name)
        if place is None or not isinstance(self.inputs[place], TensorSpec):
            return True
        return self._constant(self.step.inputs[place]) is not None

    def make_constant(self, array: Array) -> Tensor:
        """Return the tensor of an array that no input changes."""
        return self._add(Constant([], [], array=array), array.shape)[0]

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

    def is_float(self, place: int) -> bool:
        """Whether the operator's input at a place is a float32 tensor."""
        spec = self.inputs[place]
        return isinstance(spec, TensorSpec) and spec.dtype == FLOAT

    def has_operand(self, name: str) -> bool:
        """Whether an argument is a float32 tensor that an operand carries."""
        return name in self._places and self.is_float(self._places[name])


T = TypeVar("T")


def of_image(values: Sequence[T], of_rows: T) -> tuple[T, T]:
    """Return what holds for rows and columns, given for each spatial axis: a sequence is an image of one row."""
    return (of_rows, values[0]) if len(values) == 1 else (values[0], values[1])


LoweringRule: TypeAlias = Callable[[LoweringContext], Node | None]
"""Returns the node that does an operator's work, its outputs not made yet; None where numpy has to."""

RULES: dict[str, LoweringRule] = {}
"""PNNX type -> rule."""


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
