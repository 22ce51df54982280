"""Compilation of a plan to a program: lowering, fusion, kernel selection, memory layout, packed weights."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from engine.binding.boundary import at_operator
from engine.compiler.emit.jit import Code, cache
from engine.compiler.emit.object_file import ObjectFile
from engine.compiler.emit.target import Target
from engine.compiler.graph import (
    Attention,
    Constant,
    Convolution,
    Fallback,
    Linear,
    LoweredGraph,
    MatrixProduct,
    Node,
    Placeholder,
)
from engine.compiler.lowering.builder import make_graph
from engine.compiler.memory.alignment import WORD
from engine.compiler.memory.arena import ArenaPool, Lifetime, arrange, least_size
from engine.compiler.memory.release import release_compiler_memory
from engine.compiler.memory.view import Buffer, BufferKind, View
from engine.compiler.memory.weights import PackedStore, PackedWeights, fetch_side_by_side
from engine.compiler.passes.bf16 import keep_bf16
from engine.compiler.passes.fusion import fuse
from engine.compiler.passes.int8 import keep_int8
from engine.compiler.passes.storage import place
from engine.compiler.program.address_table import AddressTable
from engine.compiler.program.each_image import calls_by_image, runs_by_image
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.observable import find_observables, written_by
from engine.compiler.program.program import Program
from engine.compiler.selection import RULES, KernelCall, Selector, rounds_operands
from engine.compiler.threads.runner import runner
from engine.compiler.threads.segment import NativeStep, Segment
from engine.errors import CompileError
from engine.model.build_clock import UNLIMITED, BuildClock
from engine.model.operator import OUTPUT
from engine.precision import Precision
from engine.run.plan import MAX_RUN_BYTES, Plan
from engine.spec import TensorSpec

MAX_ARENA_BYTES = 2 * MAX_RUN_BYTES
"""Bytes of intermediate tensors and scratch memory of a program at most: kernels may need more than the plan counts."""


def compile_plan(
    plan: Plan,
    leaving: Sequence[int],
    target: Target,
    threads: int,
    packed: PackedStore | None = None,
    clock: BuildClock = UNLIMITED,
    precision: Precision = Precision.F32,
) -> Program:
    """Compile a plan.

    Args:
        plan: the plan.
        leaving: slots that leave the graph.
        target: the compilation target.
        threads: threads that share a run.
        packed: weights that other programs of the graph packed; gets those that this one does.
        clock: checked before each operator and each kernel.
        precision: lowest precision of matrix products, used where it is faster.

    Raises:
        CompileError: the compiler failed at an operator.
        BuildTimeoutError: it takes too long.
    """
    packed = PackedStore() if packed is None else packed
    with assembling(plan, leaving, Selector(target, threads, packed, precision), clock) as assembler:
        return assembler.finish(assembler.codes)


@contextmanager
def assembling(
    plan: Plan, leaving: Sequence[int], selector: Selector, clock: BuildClock = UNLIMITED
) -> Iterator["Assembler"]:
    """Yield the assembler of the program of a plan, its kernels chosen, and dissolve its graph after use.

    Args:
        plan: the plan.
        leaving: slots that leave the graph.
        selector: options of kernel selection; that of each node is a copy.
        clock: checked before each operator and each kernel.

    Raises:
        CompileError, BuildTimeoutError: as `compile_plan`.
    """
    graph = make_graph(plan, leaving, RULES, clock, selector.is_dynamic)
    fuse(graph, folds_scales=selector.precision in (Precision.F32, Precision.INT8))
    keep_int8(graph)
    if not selector.is_dynamic:
        keep_bf16(graph, partial(rounds_operands, selector))
    place(graph)
    try:
        assembler = Assembler(plan, graph, selector, clock)
        assembler.select()
        yield assembler
    finally:
        graph.dissolve()


@dataclass(slots=True)
class _Use:
    first: int
    last: int


@dataclass(slots=True)
class Assembler:
    """Selects the kernels of a graph's nodes, and the memory of their arguments; see `assembling`."""

    plan: Plan
    graph: LoweredGraph
    selector: Selector
    clock: BuildClock
    calls: list[tuple[KernelCall, Node]] = field(default_factory=list)
    instructions: list[list[int] | NumpyStep] = field(default_factory=list)
    uses: dict[Buffer, _Use] = field(default_factory=dict)
    written: dict[View, int] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)
    moment: int = 0

    def select(self) -> None:
        """Choose the kernels of all nodes."""
        for node in self.graph.nodes:
            with self._compiling(node):
                self._add(node)

    def finish(self, codes: Callable[[], Sequence[Code]]) -> Program:
        """Lay out memory, fill the table of addresses and return the program.

        Args:
            codes: returns the code of each call's kernel; called after the memory of a run is checked.

        Raises:
            CompileError: it would take too much memory.
        """
        plan, threads = self.plan, self.selector.threads
        calls = tuple(call for call, _ in self.calls)
        lifetimes = [Lifetime(buffer.size * WORD, use.first, use.last) for buffer, use in self.uses.items()]
        arrangement = arrange(lifetimes)
        offsets = dict(zip(self.uses, arrangement.offsets, strict=True))
        scratch = max((call.kernel.scratch for call in calls), default=0) * WORD * threads
        _check_size(arrangement.size + scratch)
        compiled = codes()
        fetch_side_by_side(_packed_weights(calls))
        table = AddressTable(offsets, arrangement.size)
        steps = [
            NativeStep(code, table.add(call), call.kernel.chunks)
            for code, call in zip(compiled, calls, strict=True)
        ]
        template, relative = table.finish()
        tensors = {slot: plan.specs.get(name) for name, slot in plan.slots.items()}
        shapes = {slot: spec.shape for slot, spec in tensors.items() if isinstance(spec, TensorSpec)}
        names = {slot: name for name, slot in plan.slots.items()}
        precisions = self._precisions()
        return Program(
            plan=plan,
            instructions=tuple(self._in_order(steps)),
            calls=calls,
            values=tuple(map(self.graph.constants.get, range(len(plan.slots)))),
            inputs=table.patches(BufferKind.VALUE, shapes),
            outputs=table.patches(BufferKind.OUTPUT, shapes),
            exports=self._exports(),
            dtypes=self.graph.dtypes(),
            guards=tuple(
                (names[guard.slot], guard.least, guard.largest) for guard in self.graph.guards.values()
            ),
            releases=self._releases(),
            order=self._order(),
            fused_into=self.graph.fused_into(),
            fused=self.graph.fused(),
            native=self._native(),
            folded=frozenset(self.graph.folded),
            arenas=ArenaPool(arrangement.size + scratch, template, relative),
            arrangement=arrangement,
            least_bytes=least_size(lifetimes),
            scratch_bytes=scratch,
            threads=threads,
            offsets=offsets,
            loads=tuple(table.loads),
            observables=find_observables(plan, self.graph, self.written, self.given),
            precisions=precisions,
            roughly_known=frozenset(self._with_several_products() & precisions.keys()),
        )

    def _in_order(self, steps: Sequence[NativeStep]) -> Iterator[NativeSteps | NumpyStep]:
        """Yield the instructions of a run, in order."""
        done = 0
        for instruction in self.instructions:
            if isinstance(instruction, NumpyStep):
                yield instruction
                done += 1
                continue
            owners = tuple(self.calls[place][1].steps[0] for place in instruction)
            yield NativeSteps(Segment([steps[place] for place in instruction]), owners, done)
            done += len(instruction)

    def _add(self, node: Node) -> None:
        if isinstance(node, Fallback):
            for tensor in node.inputs:
                if tensor.view is not None:
                    self._use(tensor.view)
            self.instructions.append(NumpyStep(node.steps[0], self.moment, node.collects))
            self.given.update(dict.fromkeys(self.plan.steps[node.steps[0]].outputs, self.moment))
            self.moment += 1
            return
        for call in self._calls_of(node):
            for view in call.arguments:
                self._use(view)
            self._extend_segment()
            self.calls.append((call, node))
            self.written.update(dict.fromkeys(written_by(node), self.moment))
            self.moment += 1

    def _calls_of(self, node: Node) -> Sequence[KernelCall]:
        """Return the calls of a node's kernels; of one that is only a place in memory, none."""
        if self.selector.is_dynamic and not self.selector.has_dynamic_images and runs_by_image(node):
            return calls_by_image(self.selector, node)
        selector = replace(self.selector, calls=[])
        rule = RULES.get(type(node))
        if rule is not None:
            rule(selector, node)
        return selector.calls

    def codes(self) -> list[Code]:
        """Return the code of the kernel of each call; while LLVM compiles one, the next is written."""
        started: list[Code | ObjectFile] = []
        for call, node in self.calls:
            with self._compiling(node):
                started.append(cache.start(call.kernel, self.selector.target))
        for made, (_, node) in zip(started, self.calls, strict=True):
            with self._compiling(node):
                if isinstance(made, ObjectFile):
                    made.content()
        codes = cache.link([call.kernel for call, _ in self.calls], started, self.selector.target)
        runner()
        # weights are packed after the compiler has freed its memory, so that the two never add up
        release_compiler_memory()
        return codes

    def _compiling(self, node: Node) -> AbstractContextManager[None]:
        """Return what names a node's operator where its kernel cannot be made, if there is time to make it."""
        if not node.steps:  # a constant or an input: no kernel
            return nullcontext()
        operator = self.plan.steps[node.steps[0]].operator
        self.clock.check(operator.type, operator.name)
        return at_operator(operator.type, operator.name, "cannot be compiled", CompileError)

    def _extend_segment(self) -> None:
        """Append the next call to the current segment, if no reference layer ran in between."""
        if not self.instructions or isinstance(self.instructions[-1], NumpyStep):
            self.instructions.append([])
        current = self.instructions[-1]
        if isinstance(current, list):
            current.append(len(self.calls))

    def _use(self, view: View) -> None:
        buffer = view.buffer
        if buffer.kind is BufferKind.ARENA:
            use = self.uses.setdefault(buffer, _Use(self.moment, self.moment))
            use.last = self.moment

    def _exports(self) -> dict[int, View]:
        return {
            slot: tensor.view
            for slot, tensor in self.graph.tensors.items()
            if tensor.is_kept
            and tensor.view is not None
            and not isinstance(tensor.node, Placeholder | Constant)
        }

    def _releases(self) -> tuple[tuple[int, ...], ...]:
        last: dict[int, int] = {}
        for moment, instruction in enumerate(self.instructions):
            last.update(dict.fromkeys(self._values_of(instruction), moment))
        kept = {*self.graph.leaving, *self.graph.constants}
        releases: list[list[int]] = [[] for _ in self.instructions]
        for slot, moment in last.items():
            if slot not in kept:
                releases[moment].append(slot)
        return tuple(map(tuple, releases))

    def _values_of(self, instruction: list[int] | NumpyStep) -> Iterator[int]:
        """Yield the slots whose values an instruction reads or makes."""
        if isinstance(instruction, NumpyStep):
            step = self.plan.steps[instruction.step]
            yield from step.outputs
            tensors = [self.graph.tensors.get(slot) for slot in step.inputs]
            yield from (slot for slot, tensor in zip(step.inputs, tensors, strict=True) if tensor is None)
            views = [tensor.view for tensor in tensors if tensor is not None and tensor.view is not None]
        else:
            views = [view for place in instruction for view in self.calls[place][0].arguments]
        yield from (view.buffer.slot for view in views if view.buffer.kind is BufferKind.VALUE)

    def _order(self) -> tuple[int, ...]:
        by_nodes = [step for node in self.graph.nodes for step in node.steps]
        places = range(len(self.plan.steps))
        others = [place for place in places if place not in set(by_nodes)]
        before = [place for place in others if self.plan.steps[place].operator.type != OUTPUT]
        after = [place for place in others if self.plan.steps[place].operator.type == OUTPUT]
        return tuple(dict.fromkeys((*before, *by_nodes, *after)))

    def _precisions(self) -> dict[int, Precision]:
        """Return the precision of each step whose products are rounded; of what is fused with it as well."""
        rounded = ((call.precision, node) for call, node in self.calls if call.precision is not Precision.F32)
        known: dict[int, Precision] = {step: precision for precision, node in rounded for step in node.steps}
        integers = (place for place, step in enumerate(self.plan.steps) if step.layer.int8 is not None)
        return known | dict.fromkeys(integers, Precision.INT8)

    def _with_several_products(self) -> set[int]:
        """Return the steps that take more than one product."""
        nodes = self.graph.nodes
        products = [node for node in nodes if isinstance(node, Convolution | Linear | MatrixProduct)]
        counts = Counter(step for node in products for step in node.steps)
        several = {step for node in nodes if isinstance(node, Attention) for step in node.steps}
        return several | {step for step, count in counts.items() if count > 1}

    def _native(self) -> frozenset[int]:
        done = {step for node in self.graph.nodes if not isinstance(node, Fallback) for step in node.steps}
        return frozenset(done)


def _packed_weights(calls: Sequence[KernelCall]) -> Iterator[PackedWeights]:
    """Yield the weights that kernels read, each once."""
    loads = [view.buffer.load for call in calls for view in call.arguments]
    owners = [getattr(load, "__self__", None) for load in loads]
    yield from {id(owner): owner for owner in owners if isinstance(owner, PackedWeights)}.values()


def _check_size(size: int) -> None:
    if size > MAX_ARENA_BYTES:
        problem = f"a program needs {size:,} bytes besides its inputs and outputs"
        raise CompileError(f"{problem}; expected at most {MAX_ARENA_BYTES:,}")
