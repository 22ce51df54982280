"""The plan of a run: what every operator takes, gives, costs and frees, for inputs of given shapes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from engine.binding.bound_layer import BoundLayer
from engine.binding.boundary import at_operator
from engine.errors import BuildError, BuildTimeoutError, LayerError, describe_problem
from engine.layers import BUILT_IN
from engine.model.build_clock import UNLIMITED, BuildClock
from engine.model.operator import INPUT, OUTPUT, RuntimeOperand, RuntimeOperator
from engine.spec import UNKNOWN, Spec, TensorSpec, Unknown, Value, is_known, spec_of, tensor_specs

MAX_RUN_BYTES = 4 * 2**30
"""Default limit of the live tensors of a run, in bytes."""
_EXPRESSION = "pnnx.Expression"
_RANDOM = ("torch.randn", "torch.randn_like", "torch.normal")
_MAX_KNOWN = 64
"""Elements of a constant that is computed with while a run is planned: sizes and margins, not weights."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operator in a plan.

    Attributes:
        operator: the operator.
        layer: its bound layer.
        inputs: slots that it reads.
        outputs: slots that it fills.
        release: slots that nothing reads after it.
        is_input: whether the caller fills its outputs: there is nothing to run.
        is_checked: whether the layer's shape rule has seen its inputs; where their shapes depend on data, only
            the run can show them to it.
        multiply_adds: multiply-adds of one run, 0 where unknown.
        bytes_moved: bytes of inputs, attributes and outputs; None where a shape is unknown before the run.
    """

    operator: RuntimeOperator
    layer: BoundLayer
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
    is_input: bool
    is_checked: bool
    multiply_adds: int
    bytes_moved: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """An immutable plan, shared by all runs on inputs of the same shapes.

    Attributes:
        steps: the operators in execution order.
        slots: operand name -> its slot; a run holds one value per slot.
        specs: operand name -> what is known of it before the run.
    """

    steps: tuple[Step, ...]
    slots: Mapping[str, int]
    specs: Mapping[str, Spec]

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one run, as far as shapes are known."""
        return sum(step.multiply_adds for step in self.steps)

    @property
    def peak_bytes(self) -> int | None:
        """Peak bytes of live tensors, every output counted as new memory; None if a shape is unknown."""
        if not all(map(is_known, self.specs.values())):
            return None
        return max(self.held_bytes(), default=0)

    def held_bytes(self) -> Iterator[int]:
        """Yield, for each step, the bytes of the tensors alive while it runs; unknown shapes count as nothing."""
        sizes = {self.slots[name]: _size(spec) or 0 for name, spec in self.specs.items()}
        held = 0
        for step in self.steps:
            held += sum(sizes[slot] for slot in step.outputs)
            yield held
            held -= sum(sizes[slot] for slot in step.release)


def make_plan(
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    inputs: Mapping[str, Spec],
    max_bytes: int = MAX_RUN_BYTES,
    clock: BuildClock = UNLIMITED,
) -> Plan:
    """Plan a run of operators in order on inputs given as operand name -> spec.

    Args:
        order: the operators.
        operands: all operands by name.
        inputs: specs of the graph's inputs.
        max_bytes: maximum bytes of live tensors.
        clock: checked before each operator.

    Raises:
        LayerError: a layer could not run on the shapes that would reach it, live tensors would exceed `max_bytes`, or
            planning takes too long.
    """
    given = sum(tensor.nbytes for spec in inputs.values() for tensor in tensor_specs(spec))
    if order:  # first: shape rules may not be able to represent what no machine has room for
        _check_memory(order[0], given, max_bytes)
    with np.errstate(all="ignore"):  # shape rules of expressions compute with numbers, inf and nan among them
        plan = _plan_steps(order, operands, inputs, clock)
    for step, held in zip(plan.steps, plan.held_bytes(), strict=True):
        _check_memory(step.operator, held, max_bytes)
    return plan


def _check_memory(operator: RuntimeOperator, held: int, max_bytes: int) -> None:
    """Check that the tensors alive while an operator runs take no more bytes than a run may.

    Raises:
        LayerError: they do.
    """
    if held > max_bytes:
        place = f"{operator.type} {operator.name}"
        problem = f"the tensors alive while it runs would take {held:,} bytes"
        raise LayerError(describe_problem(place, problem, f"at most {max_bytes:,} for a run (max_run_bytes)"))


def check_step(step: Step, inputs: Sequence[Value], max_bytes: int) -> None:
    """Show a layer's shape rule the inputs that it could not see when the run was planned.

    Raises:
        LayerError: the layer cannot run on them, or gives more bytes than a run may take.
    """
    with at_operator(step.operator.type, step.operator.name, "cannot be planned", LayerError):
        outputs = step.layer.infer([spec_of(value) for value in inputs])
    _check_memory(
        step.operator, sum(tensor.nbytes for spec in outputs for tensor in tensor_specs(spec)), max_bytes
    )


def is_engines(layer: BoundLayer) -> bool:
    """Return whether a layer is the engine's own.

    One that a user gives in its place may do anything, and something else in every run.
    """
    return BUILT_IN.find(layer.layer.type) == layer.layer


def is_pure(operator: RuntimeOperator) -> bool:
    """Return whether the engine's own layer of an operator gives the same for the same inputs."""
    return operator.type not in (INPUT, *_RANDOM)


class _Knowledge:
    """Compile-time knowledge of operands: their specs, and the values of small constants.

    Sizes and margins that a model computes from constants, such as the margins of Swin's windows, have to be values:
    all shapes behind them depend on them.

    Attributes:
        specs: operand name -> what is known of it.
    """

    def __init__(self, inputs: Mapping[str, Spec]) -> None:
        self.specs = dict(inputs)
        self._values: dict[str, Value] = {}

    def infer(self, operator: RuntimeOperator, layer: BoundLayer) -> None:
        """Add what is known of an operator's outputs.

        Raises:
            LayerError: the layer could not run on its inputs.
        """
        inputs = [self.specs[operand.name] for operand in operator.inputs]
        names = [operand.name for operand in operator.outputs]
        outputs = layer.infer(inputs)
        if is_engines(layer) and is_pure(operator) and all(map(_is_small, outputs)):
            values = self._computed(operator, layer)
            if values is not None:
                self._values.update(zip(names, values, strict=True))
                outputs = tuple(map(spec_of, values))
        if not all(map(is_known, outputs)):
            given: Sequence[Any] = layer.infer(self._with_lists(operator, layer))
            outputs = tuple(map(spec_of, given))
        self.specs.update(zip(names, outputs, strict=True))

    def _value(self, name: str) -> "Value | Unknown":
        """Return the value of an operand that no input changes; UNKNOWN for all others."""
        spec = self.specs[name]
        if is_known(spec) and not any(True for _ in tensor_specs(spec)):
            return spec  # type: ignore[return-value]  # what has no tensors in it is its own spec
        return self._values.get(name, UNKNOWN)

    def _computed(self, operator: RuntimeOperator, layer: BoundLayer) -> "tuple[Value, ...] | None":
        """Return the outputs of an operator whose inputs are all known; None where they are not, or are large."""
        values = [self._value(operand.name) for operand in operator.inputs]
        if any(value is UNKNOWN for value in values):
            return None
        try:
            outputs = layer.forward(values)  # type: ignore[arg-type]  # none is UNKNOWN
        except LayerError:
            return None  # known only at run time
        return outputs if all(_is_small(spec_of(output)) for output in outputs) else None

    def _with_lists(self, operator: RuntimeOperator, layer: BoundLayer) -> list[Any]:
        """Return an operator's inputs as specs, but as values where known ones carry numbers and lists."""
        inputs: list[Any] = [self.specs[operand.name] for operand in operator.inputs]
        if layer.layer.type == _EXPRESSION and is_engines(layer):
            values = [self._value(operand.name) for operand in operator.inputs]
            return [spec if value is UNKNOWN else value for spec, value in zip(inputs, values, strict=True)]
        for bound in layer.operand_arguments:
            value = self._value(operator.inputs[bound.index].name)
            if value is not UNKNOWN and not bound.argument.takes_any_tensor:
                inputs[bound.index] = value
        return inputs


def _is_small(spec: Spec) -> bool:
    """Whether a value has few elements, or it is not known how many."""
    return sum(tensor.size for tensor in tensor_specs(spec)) <= _MAX_KNOWN


def _plan_steps(
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    inputs: Mapping[str, Spec],
    clock: BuildClock,
) -> Plan:
    slots = {name: slot for slot, name in enumerate(operands)}
    last_use = _last_uses(order)
    knowledge = _Knowledge(inputs)
    specs = knowledge.specs
    steps = []
    for index, operator in enumerate(order):
        _check_clock(clock, operator)
        layer = operator.layer
        if layer is None:
            raise BuildError(f"{operator.type} {operator.name}: has no layer bound")
        touched = {operand.name for operand in (*operator.inputs, *operator.outputs)}
        release = tuple(slots[name] for name in touched if last_use[name] == index)
        with at_operator(operator.type, operator.name, "cannot be planned", LayerError):
            if operator.type != INPUT:
                knowledge.infer(operator, layer)
            steps.append(_make_step(operator, layer, slots, specs, release))
    return Plan(tuple(steps), slots, specs)


def _check_clock(clock: BuildClock, operator: RuntimeOperator) -> None:
    try:
        clock.check(operator.type, operator.name)
    except BuildTimeoutError as error:
        raise LayerError(str(error)) from error  # to a request, its shapes are what cannot be run


def _make_step(
    operator: RuntimeOperator,
    layer: BoundLayer,
    slots: Mapping[str, int],
    specs: Mapping[str, Spec],
    release: tuple[int, ...],
) -> Step:
    inputs = [specs[operand.name] for operand in operator.inputs]
    outputs = [specs[operand.name] for operand in operator.outputs]
    return Step(
        operator=operator,
        layer=layer,
        inputs=tuple(slots[operand.name] for operand in operator.inputs),
        outputs=tuple(slots[operand.name] for operand in operator.outputs),
        release=release,
        is_input=operator.type == INPUT,
        is_checked=all(map(is_known, inputs)),
        multiply_adds=layer.multiply_adds(inputs, outputs),
        bytes_moved=_bytes_moved(layer, [*inputs, *outputs]),
    )


def _last_uses(order: Sequence[RuntimeOperator]) -> dict[str, int]:
    """Operand name -> place of the last operator that touches it; outputs of the graph outlive the run."""
    last = {}
    for index, operator in enumerate(order):
        for operand in (*operator.inputs, *operator.outputs):
            last[operand.name] = index
    for operator in order:
        if operator.type == OUTPUT:
            last.update({operand.name: len(order) for operand in operator.inputs})
    return last


def _bytes_moved(layer: BoundLayer, specs: Sequence[Spec]) -> int | None:
    sizes = [_size(spec) for spec in specs]
    if any(size is None for size in sizes):
        return None
    return layer.attribute_bytes + sum(size for size in sizes if size is not None)


def _size(spec: Spec) -> int | None:
    return sum(tensor.nbytes for tensor in tensor_specs(spec)) if is_known(spec) else None


InputSpecs: TypeAlias = tuple[TensorSpec, ...]
"""Shape and dtype of each input of a graph, in their order."""

Planner: TypeAlias = Callable[[InputSpecs], Plan]
"""Returns the plan of a run on such inputs, cached."""

PLANS_PER_PROGRAM = 2
"""Cached plans (LRU) per program in the cache: a plan takes little memory."""


def cached_planner(
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    inputs: Sequence[str],
    max_run_bytes: int,
    programs_kept: int,
    max_seconds: float | None = None,
) -> Planner:
    """Return what makes plans of a graph, or returns those that it made before.

    It holds no graph: a cache around a method of a graph would hold that, which holds the cache.

    Args:
        order: operators in the order in which they run.
        operands: all operands by name.
        inputs: operand names of the graph's inputs.
        max_run_bytes: maximum bytes of live tensors in a run.
        programs_kept: maximum compiled programs in the cache.
        max_seconds: maximum planning time in seconds; None for no limit.
    """

    def plan(specs: tuple[TensorSpec, ...]) -> Plan:
        clock = BuildClock(max_seconds, "planning")
        return make_plan(order, operands, dict(zip(inputs, specs, strict=True)), max_run_bytes, clock)

    return lru_cache(maxsize=PLANS_PER_PROGRAM * programs_kept)(plan)
