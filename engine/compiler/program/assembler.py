"""Makes a program of a plan: lowers and fuses it, chooses kernels, lays out memory, packs weights."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field

from engine.boundary import at_operator
from engine.build_clock import UNLIMITED, BuildClock
from engine.compiler.emit.jit import Code, cache
from engine.compiler.emit.object_file import ObjectFile
from engine.compiler.emit.target import Target
from engine.compiler.graph import (
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
from engine.compiler.memory.weights import PackedStore
from engine.compiler.passes.fusion import fuse
from engine.compiler.passes.integers import keep_integers
from engine.compiler.passes.storage import place
from engine.compiler.program.address_table import AddressTable
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.observable import find_observables, written_by
from engine.compiler.program.program import Program
from engine.compiler.selection import RULES, KernelCall, Selector
from engine.compiler.threads.runner import runner
from engine.compiler.threads.segment import NativeStep, Segment
from engine.errors import CompileError
from engine.light_dataclass import dataclass
from engine.operator import OUTPUT
from engine.plan import MAX_RUN_BYTES, Plan
from engine.precision import Precision
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
        target: what to compile for.
        threads: threads that share a run.
        packed: weights that other programs of the graph packed; gets those that this one does.
        clock: asked before each operator, and before each kernel.
        precision: what kernels may round the operands of products to, where that is faster.

    Raises:
        CompileError: the compiler failed at an operator.
        BuildTimeoutError: it takes too long.
    """
    graph = make_graph(plan, leaving, RULES, clock)
    fuse(graph, folds_scales=precision in (Precision.F32, Precision.INT8))
    keep_integers(graph)
    place(graph)
    try:
        return _Assembler(
            plan, graph, target, threads, PackedStore() if packed is None else packed, clock, precision
        ).assemble()
    finally:
        graph.dissolve()


@dataclass(slots=True)
class _Use:
    first: int
    last: int


@dataclass(slots=True)
class _Assembler:
    plan: Plan
    graph: LoweredGraph
    target: Target
    threads: int
    packed: PackedStore
    clock: BuildClock
    precision: Precision
    calls: list[tuple[KernelCall, Node]] = field(default_factory=list)
    instructions: list[list[int] | NumpyStep] = field(default_factory=list)
    uses: dict[Buffer, _Use] = field(default_factory=dict)
    written: dict[View, int] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)
    moment: int = 0

    def assemble(self) -> Program:
        """Choose kernels, lay out memory and fill the table of addresses."""
        for node in self.graph.nodes:
            with self._compiling(node):
                self._add(node)
        buffers = list(self.uses)
        lifetimes = [Lifetime(b.size * WORD, use.first, use.last) for b, use in self.uses.items()]
        arrangement = arrange(lifetimes)
        offsets = dict(zip(buffers, arrangement.offsets, strict=True))
        scratch = max((call.kernel.scratch for call, _ in self.calls), default=0) * WORD * self.threads
        if arrangement.size + scratch > MAX_ARENA_BYTES:
            problem = (
                f"a program would take {arrangement.size + scratch:,} bytes beside its inputs and outputs"
            )
            raise CompileError(f"{problem}; expected at most {MAX_ARENA_BYTES:,}")
        codes = self._codes()
        runner()
        # weights are packed when the compiler has let go of its memory: never are both held at once
        release_compiler_memory()
        table = AddressTable(offsets, arrangement.size)
        steps = [
            NativeStep(code, table.add(call), call.kernel.chunks)
            for code, (call, _) in zip(codes, self.calls, strict=True)
        ]
        template, relative = table.finish()
        specs = self.plan.specs
        tensors = {slot: specs.get(name) for name, slot in self.plan.slots.items()}
        shapes = {slot: spec.shape for slot, spec in tensors.items() if isinstance(spec, TensorSpec)}
        return Program(
            plan=self.plan,
            instructions=tuple(self._in_order(steps)),
            calls=tuple(call for call, _ in self.calls),
            values=self._values(),
            inputs=table.patches(BufferKind.VALUE, shapes),
            outputs=table.patches(BufferKind.OUTPUT, shapes),
            exports=self._exports(),
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
            threads=self.threads,
            offsets=offsets,
            loads=tuple(table.loads),
            observables=find_observables(self.plan, self.graph, self.written, self.given),
            precisions=(precisions := self._precisions()),
            roughly_known=frozenset(self._with_several_products() & precisions.keys()),
        )

    def _add(self, node: Node) -> None:
        if isinstance(node, Fallback):
            for tensor in node.inputs:
                if tensor.view is not None:
                    self._use(tensor.view)
            self.instructions.append(NumpyStep(node.steps[0], self.moment, node.collects))
            self.given.update(dict.fromkeys(self.plan.steps[node.steps[0]].outputs, self.moment))
            self.moment += 1
            return
        rule = RULES.get(type(node))
        if rule is None:
            return  # it is only a place in memory
        selector = Selector(self.target, self.threads, self.packed, self.precision)
        rule(selector, node)
        for call in selector.calls:
            for view in call.arguments:
                self._use(view)
            self._extend_segment()
            self.calls.append((call, node))
            self.written.update(dict.fromkeys(written_by(node), self.moment))
            self.moment += 1

    def _codes(self) -> list[Code]:
        """Return the code of the kernel of each call; while LLVM compiles one, the next is written."""
        started: list[Code | ObjectFile] = []
        for call, node in self.calls:
            with self._compiling(node):
                started.append(cache.start(call.kernel, self.target))
        for made, (_, node) in zip(started, self.calls, strict=True):
            with self._compiling(node):
                if isinstance(made, ObjectFile):
                    made.content()
        return cache.link([call.kernel for call, _ in self.calls], started, self.target)

    def _compiling(self, node: Node) -> AbstractContextManager[None]:
        """Return what names a node's operator where its kernel cannot be made, if there is time to make it."""
        if not node.steps:  # a constant or an input: no kernel
            return nullcontext()
        operator = self.plan.steps[node.steps[0]].operator
        self.clock.check(operator.type, operator.name)
        return at_operator(operator.type, operator.name, "cannot be compiled", CompileError)

    def _extend_segment(self) -> None:
        """Let the call that comes next run in one go with those before it, if numpy did nothing in between."""
        if not self.instructions or isinstance(self.instructions[-1], NumpyStep):
            self.instructions.append([])
        current = self.instructions[-1]
        if isinstance(current, list):
            current.append(len(self.calls))

    def _in_order(self, steps: Sequence[NativeStep]) -> Iterator[NativeSteps | NumpyStep]:
        done = 0
        for instruction in self.instructions:
            if isinstance(instruction, NumpyStep):
                yield instruction
                done += 1
                continue
            owners = tuple(self.calls[place][1].steps[0] for place in instruction)
            yield NativeSteps(Segment([steps[place] for place in instruction]), owners, done)
            done += len(instruction)

    def _use(self, view: View) -> None:
        buffer = view.buffer
        if buffer.kind is BufferKind.ARENA:
            use = self.uses.setdefault(buffer, _Use(self.moment, self.moment))
            use.last = self.moment

    def _values(self) -> tuple[object, ...]:
        values: list[object] = [None] * len(self.plan.slots)
        for slot, value in self.graph.constants.items():
            values[slot] = value
        return tuple(values)

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
        products = [
            node for node in self.graph.nodes if isinstance(node, Convolution | Linear | MatrixProduct)
        ]
        counts = Counter(step for node in products for step in node.steps)
        return {step for step, count in counts.items() if count > 1}

    def _native(self) -> frozenset[int]:
        done = {step for node in self.graph.nodes if not isinstance(node, Fallback) for step in node.steps}
        return frozenset(done)
