"""The plan of a run: what every operator takes, gives, costs and frees, for inputs of given shapes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.binding import BoundLayer
from engine.boundary import at_operator
from engine.build_clock import UNLIMITED, BuildClock
from engine.errors import BuildError, BuildTimeoutError, LayerError, describe_problem
from engine.operator import INPUT, OUTPUT, RuntimeOperand, RuntimeOperator
from engine.spec import Spec, Value, is_known, spec_of, tensor_specs

MAX_RUN_BYTES = 4 * 2**30
"""Bytes that the tensors of a run may take at once, by default."""


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
        """Most bytes of tensors alive at once, every output counted as new memory; None where a shape is unknown."""
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
        inputs: what is known of the graph's inputs.
        max_bytes: most bytes of tensors alive at once.
        clock: asked before each operator.

    Raises:
        LayerError: a layer could not run on the shapes that would reach it, the tensors alive at once would take more
            than `max_bytes`, or planning takes too long.
    """
    with np.errstate(all="ignore"):  # shape rules of expressions compute with numbers, inf and nan among them
        plan = _plan_steps(order, operands, inputs, clock)
    for step, held in zip(plan.steps, plan.held_bytes(), strict=True):
        check_memory(step, held, max_bytes)
    return plan


def check_memory(step: Step, held: int, max_bytes: int) -> None:
    """Check that the tensors alive while a step runs take no more bytes than a run may.

    Raises:
        LayerError: they do.
    """
    if held > max_bytes:
        place = f"{step.operator.type} {step.operator.name}"
        problem = f"the tensors alive while it runs would take {held:,} bytes"
        raise LayerError(describe_problem(place, problem, f"at most {max_bytes:,} for a run"))


def check_step(step: Step, inputs: Sequence[Value], max_bytes: int) -> None:
    """Show a layer's shape rule the inputs that it could not see when the run was planned.

    Raises:
        LayerError: the layer cannot run on them, or gives more bytes than a run may take.
    """
    with at_operator(step.operator.type, step.operator.name, "cannot be planned", LayerError):
        outputs = step.layer.infer([spec_of(value) for value in inputs])
    check_memory(step, sum(tensor.nbytes for spec in outputs for tensor in tensor_specs(spec)), max_bytes)


def _plan_steps(
    order: Sequence[RuntimeOperator],
    operands: Mapping[str, RuntimeOperand],
    inputs: Mapping[str, Spec],
    clock: BuildClock,
) -> Plan:
    slots = {name: slot for slot, name in enumerate(operands)}
    last_use = _last_uses(order)
    specs: dict[str, Spec] = dict(inputs)
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
                given = layer.infer([specs[operand.name] for operand in operator.inputs])
                specs.update(zip((operand.name for operand in operator.outputs), given, strict=True))
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
