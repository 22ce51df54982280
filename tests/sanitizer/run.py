"""Runs a program call by call, with every access of its kernels checked."""

import random
from collections.abc import Mapping, Sequence

import numpy as np

from engine import RuntimeGraph
from engine.compiler.emit.target import Target
from engine.compiler.memory.alignment import WORD, address_of
from engine.compiler.memory.arena import Arena
from engine.compiler.memory.view import Buffer, BufferKind
from engine.compiler.program.assembler import compile_plan
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.program import Program
from engine.compiler.selection import KernelCall
from engine.compiler.threads.segment import Segment
from engine.dtypes import Array
from engine.model.operator import OUTPUT
from engine.run.stop import StopSignal
from engine.spec import TensorSpec, Value
from tests.sanitizer.call import Order, Place, SanitizerError, run_call
from tests.sanitizer.guard import WRITTEN
from tests.sanitizer.shadow import Shadows, words

_UNLIMITED = 1 << 60


class CheckedRun(NativeRun):
    """A run of a program whose chunks are done in random order, as threads may do them, each access checked.

    Args:
        program: what to run.
        target: what it was compiled for.
        seed: of the order.
    """

    def __init__(self, program: Program, target: Target, seed: int = 0) -> None:
        super().__init__(program, None, False, _UNLIMITED)
        self._target = target
        self._order = Order(program.threads, random.Random(seed))
        self._shadows = Shadows()
        instructions = [
            instruction for instruction in program.instructions if isinstance(instruction, NativeSteps)
        ]
        starts = np.cumsum([0, *(len(instruction.segment) for instruction in instructions)]).tolist()
        self._starts = {
            instruction.segment: start for instruction, start in zip(instructions, starts, strict=False)
        }
        self._owners = [owner for instruction in instructions for owner in instruction.owners]
        self._begins = _first_uses(program.calls)

    def execute(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        results = super().execute(inputs, outputs)
        for patch in self._program.outputs:
            array = self.values[patch.slot]
            if not (self._shadows.at(address_of(array), array.size, holds_values=False) & WRITTEN).all():
                raise SanitizerError(f"a result of shape {array.shape} has elements that nothing wrote")
        return results

    def _run_segment(
        self, segment: Segment, arena: Arena, timestamps: Array | None, stop: StopSignal | None
    ) -> int:
        for place, step in enumerate(segment.steps, self._starts[segment]):
            call = self._program.calls[place]
            for buffer in self._begins[place]:
                self._shadow(buffer, 0, arena)[...] = 0
            addresses = arena.table[step.arguments_offset :].tolist()
            try:
                self._run_call(call, addresses, arena)
            except AssertionError as error:
                operator = self._program.plan.steps[self._owners[place]].operator
                name = type(call.kernel).__name__
                raise SanitizerError(f"{operator.type} {operator.name}, {name}: {error}; {call}") from error
        return len(segment)

    def _run_call(self, call: KernelCall, addresses: Sequence[int], arena: Arena) -> None:
        places = []
        for view, address in zip(call.arguments, addresses, strict=False):
            start = address - view.offset * WORD
            places.append(Place(start, self._shadow(view.buffer, start, arena)))
        scratch = None
        if call.kernel.scratch:
            start = (addresses[len(places)] - address_of(arena.memory)) // WORD
            scratch = arena.memory.view(np.float32)[start:][: call.kernel.scratch * self._order.threads]
        run_call(call, places, self._target, self._order, scratch)

    def _shadow(self, buffer: Buffer, address: int, arena: Arena) -> Array:
        """Return the shadow of a buffer, whose memory begins at an address, or lies in the arena."""
        if buffer.kind is BufferKind.ARENA:
            start = self._program.offsets[buffer] // WORD
            size = arena.memory.size // WORD
            shadow = self._shadows.at(address_of(arena.memory), size, holds_values=False)
            return shadow[start : start + buffer.size]
        size = buffer.size if buffer.load is None else buffer.load().size
        return self._shadows.at(address, size, holds_values=buffer.kind is not BufferKind.OUTPUT)

    def _value(self, slot: int, arena: Arena) -> Value:
        view = self._program.exports.get(slot)
        if view is not None and view.buffer.kind is BufferKind.ARENA:
            shadow = self._shadow(view.buffer, 0, arena)
            if not (words(shadow, view.offset, view.shape, view.strides) & WRITTEN).all():
                raise SanitizerError(f"numpy reads elements of a tensor {view.shape} that nothing wrote")
        return super()._value(slot, arena)


def run_checked(
    graph: RuntimeGraph, inputs: Sequence[Array], target: Target, threads: int = 1
) -> list[Array]:
    """Run a built graph's program with every access checked, and compare it with an ordinary run.

    Raises:
        SanitizerError: a kernel did what its call does not allow, or results depend on the order of chunks.
    """
    plan = graph.plan([TensorSpec(array.shape, array.dtype) for array in inputs])
    leaving = [o.name for operator in graph.operators if operator.type == OUTPUT for o in operator.inputs]
    named = dict(zip((port.operand for port in graph.inputs), inputs, strict=True))
    with np.errstate(all="ignore"):
        program = compile_plan(plan, [plan.slots[name] for name in leaving], target, threads)
    results = CheckedRun(program, target).execute(named, leaving)
    plain = NativeRun(program, None, False, _UNLIMITED).execute(named, leaving)
    for result, wanted in zip(results, plain, strict=True):
        if not np.array_equal(result, wanted, equal_nan=result.dtype.kind == "f"):
            raise SanitizerError(f"a result of shape {result.shape} depends on the order of chunks")
    return results


def _first_uses(calls: Sequence[KernelCall]) -> list[list[Buffer]]:
    """Return, for each call, the buffers of the arena that come into use with it: they hold nothing yet."""
    seen: set[Buffer] = set()
    begins: list[list[Buffer]] = []
    for call in calls:
        buffers = dict.fromkeys(view.buffer for view in call.arguments)
        begins.append([b for b in buffers if b.kind is BufferKind.ARENA and b not in seen])
        seen.update(buffers)
    return begins
