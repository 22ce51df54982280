"""The plan of a run: what every operator takes, gives, costs and frees, for inputs of given shapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.binding import BoundLayer
from engine.errors import BuildError
from engine.operator import RuntimeOperand, RuntimeOperator
from engine.spec import Spec, is_known, tensor_specs


@dataclass(frozen=True, slots=True)
class Step:
    """One operator in a plan.

    Attributes:
        operator: the operator.
        layer: its bound layer.
        inputs: slots that it reads.
        outputs: slots that it fills.
        release: slots that nothing reads after it.
        multiply_adds: multiply-adds of one run, 0 where unknown.
        bytes_moved: bytes of inputs, attributes and outputs; None where a shape is unknown before the run.
    """

    operator: RuntimeOperator
    layer: BoundLayer
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    release: tuple[int, ...]
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
        sizes = {self.slots[name]: _size(spec) for name, spec in self.specs.items()}
        alive: set[int] = set()
        peak = 0
        for step in self.steps:
            alive.update(step.outputs)
            held = [sizes[slot] for slot in alive]
            if any(size is None for size in held):
                return None
            peak = max(peak, sum(size for size in held if size is not None))
            alive.difference_update(step.release)
        return peak


def make_plan(
    order: Sequence[RuntimeOperator], operands: Mapping[str, RuntimeOperand], inputs: Mapping[str, Spec]
) -> Plan:
    """Plan a run of operators in order on inputs given as operand name -> spec.

    Raises:
        LayerError: a layer could not run on the shapes that would reach it.
    """
    slots = {name: slot for slot, name in enumerate(operands)}
    last_use = _last_uses(order)
    specs: dict[str, Spec] = dict(inputs)
    steps = []
    for index, operator in enumerate(order):
        layer = operator.layer
        if layer is None:
            raise BuildError(f"{operator.type} {operator.name}: has no layer bound")
        step_inputs = [specs[operand.name] for operand in operator.inputs]
        outputs = [operand.name for operand in operator.outputs]
        if operator.type != "pnnx.Input":
            specs.update(zip(outputs, layer.infer(step_inputs), strict=True))
        step_outputs = [specs[name] for name in outputs]
        touched = {operand.name for operand in (*operator.inputs, *operator.outputs)}
        steps.append(
            Step(
                operator=operator,
                layer=layer,
                inputs=tuple(slots[operand.name] for operand in operator.inputs),
                outputs=tuple(slots[name] for name in outputs),
                release=tuple(slots[name] for name in touched if last_use[name] == index),
                multiply_adds=layer.multiply_adds(step_inputs, step_outputs),
                bytes_moved=_bytes_moved(layer, [*step_inputs, *step_outputs]),
            )
        )
    return Plan(tuple(steps), slots, specs)


def _last_uses(order: Sequence[RuntimeOperator]) -> dict[str, int]:
    """Operand name -> place of the last operator that touches it; outputs of the graph outlive the run."""
    last = {}
    for index, operator in enumerate(order):
        for operand in (*operator.inputs, *operator.outputs):
            last[operand.name] = index
    for operator in order:
        if operator.type == "pnnx.Output":
            last.update({operand.name: len(order) for operand in operator.inputs})
    return last


def _bytes_moved(layer: BoundLayer, specs: Sequence[Spec]) -> int | None:
    sizes = [_size(spec) for spec in specs]
    if any(size is None for size in sizes):
        return None
    return layer.attribute_bytes + sum(size for size in sizes if size is not None)


def _size(spec: Spec) -> int | None:
    return sum(tensor.nbytes for tensor in tensor_specs(spec)) if is_known(spec) else None
