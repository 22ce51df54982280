"""Plan of numpy layers -> the compiler's graph."""

from collections.abc import Collection, Sequence

import numpy as np

from engine.boundary import at_operator
from engine.build_clock import UNLIMITED, BuildClock
from engine.compiler.graph import (
    Concatenation,
    Constant,
    Fallback,
    LoweredGraph,
    Node,
    Placeholder,
    Reshape,
    Tensor,
    connect,
)
from engine.compiler.lowering import LAYER_RULES, RULES, TAKES_APART, LoweringContext, LoweringRule
from engine.compiler.lowering.integers import flowing, integer_contraction, may_be_rounded, rounded
from engine.dtypes import Array
from engine.errors import CompileError, KuiperError
from engine.layers import BUILT_IN
from engine.operator import OUTPUT
from engine.plan import Plan, Step
from engine.spec import Spec, TensorSpec, arrays_in, is_known, tensor_specs

FLOAT = np.dtype(np.float32)
_UNPACKS = ("prim::ListUnpack", "prim::TupleUnpack")
_RANDOM = ("torch.randn_like", "torch.normal")
LARGEST_CONSTANT = 16 << 20
"""Elements of a tensor that is computed at build because no input changes it."""


def make_graph(
    plan: Plan,
    leaving: Sequence[int],
    kinds: Collection[type[Node]],
    clock: BuildClock = UNLIMITED,
    is_open: bool = False,
) -> LoweredGraph:
    """Lower every operator of a plan that a rule takes; numpy keeps the others.

    Args:
        plan: the plan.
        leaving: slots that leave the graph.
        kinds: kinds of nodes that there are kernels for.
        clock: asked before each operator.
        is_open: whether the graph is for other extents of the inputs as well: no tensor is computed of them now.

    Raises:
        CompileError: a rule failed at an operator.
        BuildTimeoutError: it takes too long.
    """
    builder = _Builder(plan, leaving, kinds, is_open)
    for index, step in enumerate(plan.steps):
        clock.check(step.operator.type, step.operator.name)
        with at_operator(step.operator.type, step.operator.name, "cannot be lowered", CompileError):
            builder.lower(index, step)
    return builder.graph


class _Builder:
    def __init__(
        self, plan: Plan, leaving: Sequence[int], kinds: Collection[type[Node]], is_open: bool
    ) -> None:
        self._kinds = kinds
        self._is_open = is_open
        self._told: set[int] = set()  # slots of scalars that shapes of the inputs tell
        names = {slot: name for name, slot in plan.slots.items()}
        self._specs: dict[int, Spec] = {
            slot: plan.specs[name] for slot, name in names.items() if name in plan.specs
        }
        self.graph = LoweredGraph(leaving=tuple(leaving))
        self._steps = plan.steps
        self._readers: dict[int, list[int]] = {}
        for index, step in enumerate(plan.steps):
            for slot in step.inputs:
                self._readers.setdefault(slot, []).append(index)
        self._done: set[int] = set()

    def lower(self, index: int, step: Step) -> None:
        """Add the nodes of one operator."""
        if step.operator.type == OUTPUT:
            self.graph.ends.update(dict.fromkeys(step.inputs, index))
        if step.is_input or step.operator.type == OUTPUT or index in self._done:
            return
        is_own = is_engines(step)
        if is_own and self._fold(index, step):
            return
        unpack = self._unpack(step) if is_own else None
        slots = step.outputs if unpack is None else self._steps[unpack].outputs
        node = self._node(index, step, slots)
        if node is None:
            self._fall_back(index, step)
            return
        if unpack is not None:
            node.steps.append(unpack)
            self._done.add(unpack)
        self._add_outputs(node, step if unpack is None else self._steps[unpack], slots)

    def _add_outputs(self, node: Node, step: Step, slots: Sequence[int]) -> None:
        """Add the node that gives what goes to some slots, in integers where their operator's outputs have scales."""
        shapes = [spec.shape for slot in slots for spec in tensor_specs(self._specs[slot])]
        flow = flowing(self._add, node, step, shapes)
        if flow is None:
            tensors = self._add(node, *shapes)
        else:
            node, forms = flow
            tensors = self._add(node, *(form.shape for form in forms))
            for tensor, form in zip(tensors, forms, strict=True):
                tensor.scale, tensor.channels = form.scale, form.channels
        places = range(len(tensors))
        results = [rounded(self._add, step, node, place, tensors[place]) for place in places]
        self.graph.tensors.update(zip(slots, results, strict=True))

    def _unpack(self, step: Step) -> int | None:
        """Return the only reader of an operator's list of parts, if that spreads it over outputs of its own.

        The two are done as one: the list itself is never made.
        """
        if step.operator.type not in TAKES_APART or len(step.outputs) != 1:
            return None
        (slot,) = step.outputs
        readers = self._readers.get(slot, [])
        if len(readers) != 1 or slot in self.graph.leaving:
            return None
        reader, parts = self._steps[readers[0]], self._specs[slot]
        if not isinstance(parts, tuple | list) or len(parts) != len(reader.outputs):
            return None
        is_unpack = reader.operator.type in _UNPACKS and is_engines(reader) and reader.is_checked
        return readers[0] if is_unpack else None

    def _node(self, index: int, step: Step, slots: Sequence[int]) -> Node | None:
        """Return the node of an operator whose outputs go to some slots, None where numpy has to run it."""
        rule = _rule_of(step)
        outputs = [self._specs[slot] for slot in slots]
        known = all(isinstance(spec, TensorSpec) and spec.dtype == FLOAT and spec.size for spec in outputs)
        if rule is None or not outputs or not known or not step.is_checked or not _takes_operand(step):
            return None
        if not may_be_rounded(step, [len(spec.shape) for spec in outputs if isinstance(spec, TensorSpec)]):
            return None
        inputs = [self._specs[slot] for slot in step.inputs]
        if any(isinstance(spec, TensorSpec) and not spec.size for spec in inputs):
            return None
        context = LoweringContext(
            index,
            step,
            inputs,
            outputs,
            tensor=self._tensor,
            constant=self._constant,
            add=self._add,
        )
        node = rule(context)
        if node is not None and step.layer.int8 is not None:
            node = integer_contraction(self._add, node, step.layer.int8)
        return (
            node
            if node is None or isinstance(node, Reshape | Concatenation) or type(node) in self._kinds
            else None
        )

    def _fold(self, index: int, step: Step) -> bool:
        """Compute now what no input changes: scalars that shapes tell, and tensors made of constants."""
        specs = [self._specs.get(slot) for slot in step.outputs]
        constants = self.graph.constants
        if specs and all(_is_scalar(spec) for spec in specs):
            constants.update(zip(step.outputs, specs, strict=True))
            if not all(slot in constants and slot not in self._told for slot in step.inputs):
                self._told.update(step.outputs)
        elif self._is_open and not self._told.isdisjoint(step.inputs):
            return False
        elif _is_pure(step) and all(slot in constants for slot in step.inputs):
            if not specs or not all(map(_is_small, specs)):
                return False
            try:
                values = step.layer.forward([constants[slot] for slot in step.inputs])  # type: ignore[misc]  # values of operands all
            except KuiperError:
                return False  # the run will tell
            for array in arrays_in(tuple(values)):
                array.flags.writeable = False  # it is the same in every run
            constants.update(zip(step.outputs, values, strict=True))
        else:
            return False
        self.graph.folded.add(index)
        return True

    def _fall_back(self, index: int, step: Step) -> None:
        read = [slot for slot in step.inputs if slot in self.graph.tensors]
        collects = _collects(step) and all(slot in self.graph.leaving for slot in step.outputs)
        if collects:
            self.graph.leaving = (*self.graph.leaving, *read)
        tensors = [self.graph.tensors[slot] for slot in read]
        for tensor in tensors:
            tensor.is_kept |= not collects
        self._add(Fallback([index], tensors, collects=collects))

    def _tensor(self, slot: int) -> Tensor:
        """Return the tensor of a slot; for one that numpy computes, a placeholder."""
        if slot not in self.graph.tensors:
            constant = self._constant(slot)
            if constant is not None:
                self.graph.tensors[slot] = self._make_constant(constant)
            else:
                spec = self._specs[slot]
                if not isinstance(spec, TensorSpec):
                    raise TypeError(f"slot {slot} carries no tensor")
                self.graph.tensors[slot] = self._add(Placeholder([], [], slot=slot), spec.shape)[0]
        return self.graph.tensors[slot]

    def _constant(self, slot: int) -> Array | None:
        value = self.graph.constants.get(slot)
        return value if isinstance(value, np.ndarray) else None

    def _make_constant(self, array: Array) -> Tensor:
        return self._add(Constant([], [], array=array), array.shape)[0]

    def _add(self, node: Node, *shapes: tuple[int, ...]) -> list[Tensor]:
        self.graph.nodes.append(node)
        return connect(node, *shapes)


def _is_scalar(spec: Spec) -> bool:
    return spec is not None and is_known(spec) and not any(True for _ in tensor_specs(spec))


def _is_small(spec: Spec) -> bool:
    return isinstance(spec, TensorSpec) and spec.size <= LARGEST_CONSTANT


def _takes_operand(step: Step) -> bool:
    """Whether an operand carries what a layer works on; a file may give an attribute of that name in its place."""
    layer = step.layer.layer
    return layer.variadic or not layer.arguments or layer.arguments[0].name in step.layer.operand_places


def _rule_of(step: Step) -> LoweringRule | None:
    """Return the rule that was written for the very layer that runs an operator, None where there is none."""
    layer = step.layer.layer
    return RULES.get(layer.type) if is_engines(step) else LAYER_RULES.get(layer.forward)


def is_engines(step: Step) -> bool:
    """Tell whether the engine's own layer runs an operator.

    Rules and folding know only what that one does. A layer that a user gives in its place may do anything, and
    something else in every run.
    """
    layer = step.layer.layer
    return BUILT_IN.find(layer.type) == layer


def _collects(step: Step) -> bool:
    """Whether an operator only makes a list or a tuple of its inputs."""
    return is_engines(step) and step.layer.gathers


def _is_pure(step: Step) -> bool:
    """Whether an operator gives the same for the same inputs: attributes, and all that has inputs."""
    name = step.operator.type
    return name == "pnnx.Attribute" or (bool(step.inputs) and name not in _RANDOM)
