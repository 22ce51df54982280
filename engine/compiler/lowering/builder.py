"""Lowering of a plan of layers to the compiler's graph."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from engine import expression as source
from engine.binding.boundary import at_operator
from engine.compiler.graph import (
    EXACT,
    FLOAT,
    Bounds,
    Concatenation,
    Fallback,
    Guard,
    LoweredGraph,
    Node,
    Placeholder,
    Reshape,
    Tensor,
    connect,
)
from engine.compiler.lowering import (
    GIVES_PLACES,
    LAYER_RULES,
    RULES,
    TAKES_APART,
    LoweringContext,
    LoweringRule,
)
from engine.compiler.lowering.context import OF_MASKS, READERS, constant_tensor, is_readable
from engine.compiler.lowering.int8 import flowing, int8_contraction, may_be_rounded, rounded
from engine.dtypes import Array
from engine.errors import CompileError, KuiperError
from engine.model.build_clock import UNLIMITED, BuildClock
from engine.model.operator import OUTPUT
from engine.run.plan import Plan, Step, is_engines, is_pure
from engine.spec import Spec, TensorSpec, arrays_in, is_known, tensor_specs

_OF_NUMBERS = ("torch.arange",)
"""Operators that take no tensors."""
TAKES_LISTS = ("Tensor.index",)
"""Operators whose rules read the members of a list."""
_UNPACKS = ("prim::ListUnpack", "prim::TupleUnpack")
_OF_A_SHAPE = (
    *("torch.zeros_like", "torch.ones_like", "torch.full_like", "torch.empty_like"),
    *("Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_full", "Tensor.new_empty"),
)
"""Operators that read nothing of their first input but its shape and dtype."""
LARGEST_CONSTANT = 16 << 20
"""Elements of a tensor that is computed at build because no input changes it."""


def make_graph(
    plan: Plan,
    leaving: Sequence[int],
    kinds: Collection[type[Node]],
    clock: BuildClock = UNLIMITED,
    is_dynamic: bool = False,
) -> LoweredGraph:
    """Lower every operator of a plan that a rule supports; the others run in numpy.

    Args:
        plan: the plan.
        leaving: slots that leave the graph.
        kinds: kinds of nodes that there are kernels for.
        clock: checked before each operator.
        is_dynamic: whether the graph has dynamic axes: no tensor is computed from extents at compile time.

    Raises:
        CompileError: a rule failed at an operator.
        BuildTimeoutError: it takes too long.
    """
    builder = _Builder(plan, leaving, kinds, is_dynamic)
    for index, step in enumerate(plan.steps):
        clock.check(step.operator.type, step.operator.name)
        with at_operator(step.operator.type, step.operator.name, "cannot be lowered", CompileError):
            builder.lower(index, step)
    return builder.graph


class _Builder:
    def __init__(
        self, plan: Plan, leaving: Sequence[int], kinds: Collection[type[Node]], is_dynamic: bool
    ) -> None:
        self._kinds = kinds
        self._is_dynamic = is_dynamic
        self._shape_scalars: set[int] = set()  # slots of scalars that depend on input shapes
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
        self._inputs = {slot for step in plan.steps if step.is_input for slot in step.outputs}
        self._done: set[int] = set()
        # of lists that are not made, as a rule may read their members: slot -> slots of members, slot -> step
        self._lists: dict[int, list[int | None]] = {}
        self._makers: dict[int, int] = {}
        # bounds of tensors before the current rule
        self._assumed: list[tuple[Tensor, Bounds | None]] = []

    def lower(self, index: int, step: Step) -> None:
        """Add the nodes of one operator."""
        if step.operator.type == OUTPUT:
            self.graph.ends.update(dict.fromkeys(step.inputs, index))
        if step.is_input or step.operator.type == OUTPUT or index in self._done:
            return
        is_own = is_engines(step.layer)
        if is_own and (self._fold(index, step) or self._put_off(index, step)):
            return
        unpack = self._unpack(step) if is_own else None
        slots = self._wanted(step) if unpack is None else self._steps[unpack].outputs
        made = self._node_or_nothing(index, step, slots)
        makers = [self._makers.pop(slot) for slot in step.inputs if slot in self._makers]
        if made is None:
            for place in (*makers, index):
                self._fall_back(place, self._steps[place])
            return
        node, bounds = made
        node.steps += makers
        if unpack is not None:
            node.steps.append(unpack)
            self._done.add(unpack)
        self._add_outputs(node, step if unpack is None else self._steps[unpack], slots)
        for slot in slots:
            spec = self._specs[slot]
            if isinstance(spec, TensorSpec) and spec.dtype != FLOAT:
                self.graph.tensors[slot].dtype, self.graph.tensors[slot].bounds = spec.dtype, bounds

    def _wanted(self, step: Step) -> Sequence[int]:
        """Return the outputs of an operator, without unread indices of extremes."""
        others = step.outputs[1:]
        are_read = any(slot in self._readers or slot in self.graph.leaving for slot in others)
        return step.outputs if are_read or step.operator.type not in GIVES_PLACES else step.outputs[:1]

    def _node_or_nothing(
        self, index: int, step: Step, slots: Sequence[int]
    ) -> tuple[Node, Bounds | None] | None:
        """Return what `_node` does; where that is None, assumptions are rolled back."""
        guards = dict(self.graph.guards)
        self._assumed.clear()
        made = self._node(index, step, slots)
        if made is None:
            self.graph.guards = guards
            for tensor, before in reversed(self._assumed):
                tensor.bounds = before
        return made

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

    def _put_off(self, index: int, step: Step) -> bool:
        """Leave out an operator that only makes a list of indices for one reader, which may read its members."""
        if not _collects(step) or len(step.outputs) != 1:
            return False
        (slot,) = step.outputs
        readers = self._readers.get(slot, [])
        if len(readers) != 1 or slot in self.graph.leaving:
            return False
        if self._steps[readers[0]].operator.type not in TAKES_LISTS:
            return False
        members = self._members_of(step)
        if members is None:
            return False
        self._lists[slot], self._makers[slot] = members, index
        return True

    def _members_of(self, step: Step) -> list[int | None] | None:
        """Return the slots of a list's members, None for those that are none."""
        expression = step.layer.arguments.get("expr")
        if not isinstance(expression, source.Expression):
            return list(step.inputs)
        root = expression.root
        if not isinstance(root, source.ListNode):
            return None
        members: list[int | None] = []
        for item in root.items:
            if isinstance(item, source.OperandNode):
                members.append(step.inputs[item.index])
            elif isinstance(item, source.ConstantNode) and item.value is None:
                members.append(None)
            else:
                return None
        return members

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
        is_unpack = reader.operator.type in _UNPACKS and is_engines(reader.layer) and reader.is_checked
        return readers[0] if is_unpack else None

    def _node(self, index: int, step: Step, slots: Sequence[int]) -> tuple[Node, Bounds | None] | None:
        """Return the node of an operator whose outputs go to some slots, and the bounds of their integers.

        None where numpy has to run it.
        """
        rule = _rule_of(step)
        outputs = [self._specs[slot] for slot in slots]
        takes_all = rule is not None and rule in READERS
        known = all(
            isinstance(spec, TensorSpec)
            and spec.size
            and (is_readable(spec) if takes_all else spec.dtype == FLOAT)
            for spec in outputs
        )
        if rule is None or not outputs or not known or not step.is_checked or not _takes_operand(step):
            return None
        if not may_be_rounded(step, [len(spec.shape) for spec in outputs if isinstance(spec, TensorSpec)]):
            return None
        inputs = [self._specs[slot] for slot in step.inputs]
        if any(isinstance(spec, TensorSpec) and not spec.size for spec in inputs):
            return None
        gives_integers = any(isinstance(spec, TensorSpec) and spec.dtype.kind in "iu" for spec in outputs)
        if gives_integers:
            self._assume_exact(step.inputs)
        context = LoweringContext(
            index,
            step,
            inputs,
            outputs,
            tensor=self._tensor,
            constant=self._constant,
            add=self._add,
            assume=self._assume,
            members=self._lists.get,
            is_dynamic=self._is_dynamic,
        )
        node = rule(context)
        if node is not None and step.layer.int8 is not None:
            node = int8_contraction(self._add, node, step.layer.int8)
        if node is None or not (isinstance(node, Reshape | Concatenation) or type(node) in self._kinds):
            return None
        # only inputs of kernels may be rounded: what they give may be read by numpy, or leave the graph
        return None if gives_integers and context.bounds is None else (node, context.bounds)

    def _assume_exact(self, slots: Sequence[int]) -> None:
        """Assume that inputs of the graph which an operator reads are integers that float32 represents."""
        for slot in slots:
            spec = self._specs[slot]
            is_integer = isinstance(spec, TensorSpec) and spec.dtype.kind in "iu"
            if is_integer and self._tensor(slot).bounds is None:
                self._assume(slot, (-EXACT, EXACT))

    def _assume(self, slot: int, bounds: Bounds) -> bool:
        """Assume that an input of the graph, or a view of one, is within bounds; False for other tensors."""
        looks = [self._tensor(slot)]
        while isinstance(looks[-1].node, Reshape):
            looks.append(looks[-1].node.inputs[0])
        source = looks[-1].node
        if not isinstance(source, Placeholder) or source.slot not in self._inputs:
            return False
        if bounds == OF_MASKS and self._is_looked_up(source.slot):
            return False
        known = self.graph.guards.get(source.slot)
        if known is not None:
            bounds = max(bounds[0], known.least), min(bounds[1], known.largest)
        self.graph.guards[source.slot] = Guard(source.slot, *bounds)
        for tensor in looks:
            self._assumed.append((tensor, tensor.bounds))
            tensor.bounds = bounds
        return True

    def _is_looked_up(self, slot: int) -> bool:
        """Whether an input is that of a table: then it is no mask, and its integers are as large as the table is."""
        readers = (self._steps[place].operator.type for place in self._readers.get(slot, []))
        return not {"nn.Embedding", "F.embedding"}.isdisjoint(readers)

    def _fold(self, index: int, step: Step) -> bool:
        """Fold constants: scalars that depend on shapes, and tensors computed from constants."""
        specs = [self._specs.get(slot) for slot in step.outputs]
        constants = self.graph.constants
        if specs and all(_is_scalar(spec) for spec in specs):
            constants.update(zip(step.outputs, specs, strict=True))
            if not all(slot in constants and slot not in self._shape_scalars for slot in step.inputs):
                self._shape_scalars.update(step.outputs)
        elif self._is_dynamic and not self._shape_scalars.isdisjoint(step.inputs):
            return False
        elif is_pure(step.operator) and all(self._follows_from_shape(slot, step) for slot in step.inputs):
            if not specs or not all(map(_is_small, specs)):
                return False
            try:
                values = step.layer.forward([self._known(slot) for slot in step.inputs])
            except KuiperError:
                return False  # known only at run time
            for array in arrays_in(tuple(values)):
                array.flags.writeable = False  # it is the same in every run
            constants.update(zip(step.outputs, values, strict=True))
        else:
            return False
        self.graph.folded.add(index)
        return True

    def _follows_from_shape(self, slot: int, step: Step) -> bool:
        """Whether an operator's input is known at build, or nothing of it counts but its shape and dtype."""
        if slot in self.graph.constants:
            return True
        is_shape = step.operator.type in _OF_A_SHAPE and slot == step.inputs[0] and not self._is_dynamic
        return is_shape and isinstance(self._specs.get(slot), TensorSpec)

    def _known(self, slot: int) -> Any:
        """Return a value that no input changes; zeros in the shape of one that operators look at for its shape."""
        if slot in self.graph.constants:
            return self.graph.constants[slot]
        spec = self._specs[slot]
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"slot {slot} carries no tensor")
        return np.broadcast_to(np.zeros((), spec.dtype), spec.shape)

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
                self.graph.tensors[slot] = constant_tensor(self._add, constant)
            else:
                spec = self._specs[slot]
                if not isinstance(spec, TensorSpec):
                    raise TypeError(f"slot {slot} carries no tensor")
                tensor = self._add(Placeholder([], [], slot=slot), spec.shape)[0]
                tensor.dtype, tensor.bounds = spec.dtype, _bounds_of(spec.dtype)
                self.graph.tensors[slot] = tensor
        return self.graph.tensors[slot]

    def _constant(self, slot: int) -> Array | None:
        value = self.graph.constants.get(slot)
        return value if isinstance(value, np.ndarray) else None

    def _add(self, node: Node, *shapes: tuple[int, ...]) -> list[Tensor]:
        self.graph.nodes.append(node)
        return connect(node, *shapes)


def _bounds_of(dtype: np.dtype[Any]) -> Bounds | None:
    """Return the bounds of all integers of a dtype; None where not all of them are exact."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    return None if limits is None or limits.max > EXACT else (int(limits.min), int(limits.max))


def _is_scalar(spec: Spec) -> bool:
    return spec is not None and is_known(spec) and not any(True for _ in tensor_specs(spec))


def _is_small(spec: Spec) -> bool:
    return isinstance(spec, TensorSpec) and spec.size <= LARGEST_CONSTANT


def _takes_operand(step: Step) -> bool:
    """Whether an operand carries what a layer works on; a file may give an attribute of that name in its place."""
    layer = step.layer.layer
    if layer.type in _OF_NUMBERS:
        return True
    return layer.variadic or not layer.arguments or layer.arguments[0].name in step.layer.operand_places


def _rule_of(step: Step) -> LoweringRule | None:
    """Return the rule that was written for the very layer that runs an operator, None where there is none."""
    layer = step.layer.layer
    return RULES.get(layer.type) if is_engines(step.layer) else LAYER_RULES.get(layer.forward)


def _collects(step: Step) -> bool:
    """Whether an operator only makes a list or a tuple of its inputs."""
    return is_engines(step.layer) and step.layer.gathers
