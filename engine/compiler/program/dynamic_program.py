"""A program for inputs of all lengths: kernels take extents as arguments, and memory is laid out again for each length.

It is built for a few sample lengths. Their builders differ only in integers that are functions of the length, so the
builder for any other length is interpolated, in a fraction of the time that building takes. Nothing of it is trusted:
each kernel's regions are checked against its arguments, and each tensor's shape is compared with the one in the plan.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.compiler.emit.jit import Code, Kernel, general
from engine.compiler.memory.region import RegionError, check_arguments
from engine.compiler.memory.view import BufferKind, View
from engine.compiler.program.assembler import assembling
from engine.compiler.program.interpolation import LEAST_SAMPLES, Made, MisfitError, Part, interpolate
from engine.compiler.program.program import Program
from engine.compiler.program.program_builder import ProgramBuilder
from engine.compiler.selection import KernelCall, Selector
from engine.errors import KuiperError
from engine.model.build_clock import BuildClock
from engine.run.plan import Plan
from engine.spec import TensorSpec, tensor_specs

SAMPLES = (7, 19, 37, 67, 11, 13, 17, 23, 5)
"""Lengths that programs are built for, those first that differ most: none is likely to be an extent of the model."""
LEAST_LENGTH = 2
"""Tensors of length 1 are laid out in another way: any stride serves an axis of one element."""
_SAMPLES_WANTED = LEAST_SAMPLES + 1

PlanAt = Callable[[int], Plan]
"""Returns the plan for inputs of a length; raises KuiperError if the model does not support it."""


@dataclass(frozen=True, slots=True, eq=False)
class DynamicProgram:
    """A dynamic-shape program, which instantiates a program for each length.

    Attributes:
        part: gives the builder.
        codes: for each call, the code of its kernel.
        kernels: for each call, the kernel that the code is of.
        threads: threads that share a run.
    """

    part: Part
    codes: tuple[Code, ...]
    kernels: tuple[Kernel, ...]
    threads: int

    def at(self, plan: Plan, length: int) -> Program:
        """Return the program for inputs of a length.

        Raises:
            MisfitError, RegionError: there is none; such inputs need a program of their own.
            CompileError: it would take too much memory.
        """
        if length < LEAST_LENGTH:
            raise MisfitError(f"length {length}; expected {LEAST_LENGTH} at least")
        made: Made = {}
        builder: ProgramBuilder = self.part.at(length, made)
        if any(value > limit for value, limit in builder.claims):
            raise MisfitError(f"length {length}: an index or an integer may be too large")
        self._check_calls(builder.calls)
        _check_shapes(builder, plan)
        return builder.finish(plan, lambda: self.codes, self.threads)

    def _check_calls(self, calls: Sequence[KernelCall]) -> None:
        """Check that the codes are those of the calls' kernels, and touch nothing but their arguments."""
        known: set[object] = set()
        for call, kernel in zip(calls, self.kernels, strict=True):
            look = (call.kernel, kernel, *_looks(call.arguments))
            if look in known:  # layers that are alike have calls that are
                continue
            known.add(look)
            if general(call.kernel) != kernel:
                raise MisfitError(f"{call.kernel} needs other code than {kernel}")
            if any(extent < 1 for view in call.arguments for extent in view.shape):
                raise MisfitError(f"{call.kernel} is given an empty tensor")
            check_arguments(type(call.kernel).__name__, call.kernel.regions, call.arguments)


def dynamic_program(
    plan_at: PlanAt, leaving: Sequence[str], selector: Selector, clock: BuildClock
) -> DynamicProgram:
    """Return the program for inputs of all lengths, its kernels compiled.

    Args:
        plan_at: makes plans.
        leaving: names of the operands that leave the graph.
        selector: options of kernel selection.
        clock: checked before each operator and each kernel.

    Raises:
        MisfitError: there is none for this model.
        RegionError, CompileError, BuildTimeoutError: as of any program.
    """
    try:
        return _built(plan_at, leaving, selector, clock)
    except MisfitError:  # claims about lengths may be no polynomials
        return _built(plan_at, leaving, replace(selector, claims=False), clock)


def _built(plan_at: PlanAt, leaving: Sequence[str], selector: Selector, clock: BuildClock) -> DynamicProgram:
    lengths: list[int] = []
    builders: list[ProgramBuilder] = []
    kernels: tuple[Kernel, ...] = ()
    for length, plan in _plans(plan_at):
        with assembling(plan, _slots(plan, leaving), selector, clock) as assembler:
            builder = assembler.build()
            needed = tuple(general(call.kernel) for call in builder.calls)
            if not needed:
                raise MisfitError("no kernel can do any of it")
            if builders and needed != kernels:
                raise MisfitError(f"the kernels for length {length} are others than for {lengths[0]}")
            lengths.append(length)
            builders.append(builder)
            kernels = needed
            if len(builders) == _SAMPLES_WANTED:
                part = interpolate(builders, lengths)
                return DynamicProgram(part, tuple(assembler.codes()), kernels, selector.threads)
    raise MisfitError(f"the model takes too few lengths of {SAMPLES}")


def _plans(plan_at: PlanAt) -> Iterator[tuple[int, Plan]]:
    for length in SAMPLES:
        try:
            yield length, plan_at(length)
        except KuiperError:  # for example too long for the model
            continue


def _slots(plan: Plan, names: Sequence[str]) -> list[int]:
    return [plan.slots[name] for name in names]


def _looks(views: Sequence[View]) -> Iterator[object]:
    """Yield what of a call's arguments decides whether they have the regions of its kernel."""
    buffers = [view.buffer for view in views]
    for view in views:
        first = next(place for place, buffer in enumerate(buffers) if buffer is view.buffer)
        yield (view.buffer.kind, view.buffer.size, first, view.offset, view.shape, view.strides)


def _check_shapes(builder: ProgramBuilder, plan: Plan) -> None:
    """Check tensors against the shapes of the plan, and scalars against its values.

    Raises:
        MisfitError: one has another.
        RegionError: a kernel could touch memory outside an input or output.
    """
    specs = {slot: plan.specs.get(name) for name, slot in plan.slots.items()}
    for slot, seen in builder.observables.by_slot.items():
        spec = specs[slot]
        if seen.shape is not None and not (isinstance(spec, TensorSpec) and spec.shape == seen.shape):
            raise MisfitError(f"{slot}: {seen.shape} where {spec} is planned")
    for slot, value in builder.constants.items():
        spec = specs[slot]
        if not any(True for _ in tensor_specs(spec)) and spec != value:
            raise MisfitError(f"{slot}: {value} where {spec} is planned")
    for call in builder.calls:
        for buffer in (view.buffer for view in call.arguments):
            if buffer.kind in (BufferKind.VALUE, BufferKind.OUTPUT):
                spec = specs[buffer.slot]
                if not isinstance(spec, TensorSpec) or spec.size != buffer.size:
                    raise RegionError(f"{buffer.size} elements where {spec} is planned")
