"""One run of a compiled program. All that changes during a run lives here or in its arena."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, Protocol

import numpy as np

from engine.compiler.memory.alignment import WORD, row_by_row
from engine.compiler.memory.arena import Arena
from engine.compiler.memory.view import Buffer, BufferKind, View
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.compiler.program.observable import BEFORE_ALL, Observable
from engine.compiler.program.program import Program
from engine.compiler.threads.segment import Segment
from engine.compiler.threads.thread_team import run_segment
from engine.dtypes import Array
from engine.errors import LayerError, stopped_before
from engine.quantization.tensor_scale import TensorScale
from engine.run.plan import Step, check_step
from engine.run.run import StopCheck, as_tensors
from engine.run.stop import StopSignal
from engine.spec import Value, arrays_in

StepTimes = dict[int, tuple[int, int]]
"""Step -> when it began and how long it took, in nanoseconds."""


class Watch(Protocol):
    """Observes what a run computes, while it is in progress."""

    def cuts(self, instruction: NativeSteps) -> Sequence[int]:
        """Return after how many of the calls the run must pause to show its tensors, ascending, up to all of them."""

    def look(self, number: int, value: Callable[[int], Value]) -> None:
        """Observe what is complete right after a call or numpy step.

        Args:
            number: its number; `BEFORE_ALL` before the first.
            value: slot -> its value; arrays that lie in the run's memory, where they do not stay.
        """


class NativeRun:
    """A run in progress.

    Args:
        program: the program.
        stop: called before each layer.
        is_timed: whether timestamps are recorded.
        max_bytes: maximum bytes of the results of a layer whose output shapes are known only at run time.
        watch: observes what the run computes.

    Attributes:
        values: one value per slot; tensors that stay in the arena are not among them.
        timestamps: when each step ran, if that was requested.
    """

    def __init__(
        self,
        program: Program,
        stop: StopCheck | None,
        is_timed: bool,
        max_bytes: int,
        watch: Watch | None = None,
    ) -> None:
        self._program = program
        self._watch = watch
        self._stop = stop
        self._is_timed = is_timed
        self._max_bytes = max_bytes
        self.values: list[Any] = list(program.values)
        self.timestamps: StepTimes = {}
        self._pending = {patch.slot: patch for patch in program.inputs}
        self._held: dict[int, Array | None] = {}  # arrays that the arena's table points at

    def execute(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
        """Run the program; returns the graph's outputs.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check stopped the run.
        """
        slots = self._program.plan.slots
        for name, array in inputs.items():
            self.values[slots[name]] = array
        arena = self._program.arenas.take()
        try:
            self._run(arena)
        finally:
            self._program.arenas.give_back(arena)
        values = [self._typed(slots[name], self.values[slots[name]]) for name in outputs]
        return [array for value in values for array in arrays_in(as_tensors(value))]

    def _run(self, arena: Arena) -> None:
        for patch in self._program.outputs:
            self.values[patch.slot] = array = np.empty(patch.shape, np.float32)
            patch.fill_in(arena, array)
        self._show(BEFORE_ALL, arena)
        for instruction, release in zip(self._program.instructions, self._program.releases, strict=True):
            if isinstance(instruction, NumpyStep):
                self._run_numpy(instruction, arena)
                self._show(instruction.number, arena)
            else:
                self._run_native(instruction, arena)
            if not self._is_timed:  # the trace looks at them all
                for slot in release:
                    self.values[slot] = self._held[slot] = None

    def _run_native(self, instruction: NativeSteps, arena: Arena) -> None:
        for slot in [slot for slot in self._pending if self.values[slot] is not None]:
            self._held[slot] = array = row_by_row(self.values[slot])
            self._pending.pop(slot).fill_in(arena, array)
        done = 0
        for end in (len(instruction.segment),) if self._watch is None else self._watch.cuts(instruction):
            self._run_calls(instruction.part(done, end), arena)
            self._show(instruction.first + end - 1, arena)
            done = end

    def _show(self, number: int, arena: Arena) -> None:
        if self._watch is not None:
            places = self._program.observables.by_slot
            with np.errstate(all="ignore"):  # who looks may compute with inf and nan
                self._watch.look(number, lambda slot: self._observed(slot, places[slot], arena))

    def _run_calls(self, instruction: NativeSteps, arena: Arena) -> None:
        segment = instruction.segment
        timestamps = np.empty(len(segment) + 1, np.int64) if self._is_timed else None
        if self._stop is None or isinstance(self._stop, StopSignal):
            done = self._run_segment(segment, arena, timestamps, self._stop)
            if done < len(segment):
                self._raise_stopped(instruction.owners[done], None if self._stop is None else self._stop())
        else:
            self._run_asking(instruction, arena, timestamps, self._stop)
        if timestamps is not None:
            self._note(instruction.owners, timestamps.tolist())

    def _run_asking(
        self, instruction: NativeSteps, arena: Arena, timestamps: Array | None, stop: StopCheck
    ) -> None:
        """Run a segment step by step: native code cannot ask a function of Python's."""
        for place, (step, owner) in enumerate(
            zip(instruction.segment.steps, instruction.owners, strict=True)
        ):
            if (reason := stop()) is not None:
                self._raise_stopped(owner, reason)
            self._run_segment(
                Segment([step]), arena, None if timestamps is None else timestamps[place : place + 2], None
            )

    def _run_segment(
        self, segment: Segment, arena: Arena, timestamps: Array | None, stop: StopSignal | None
    ) -> int:
        return run_segment(self._program.threads, segment, arena.table_address, timestamps, stop)

    def _run_numpy(self, instruction: NumpyStep, arena: Arena) -> None:
        """Run a layer's own forward on arrays that lie in the arena or came by values."""
        place = instruction.step
        step = self._program.plan.steps[place]
        if self._stop is not None and (reason := self._stop()) is not None:
            self._raise_stopped(place, reason)
        started = perf_counter_ns()
        results: Sequence[Value]
        if instruction.collects:
            results = step.layer.forward([self._typed(slot, self.values[slot]) for slot in step.inputs])
        else:
            results = self._forward(step, arena)
        for slot, value in zip(step.outputs, results, strict=True):
            self.values[slot] = value
        if self._is_timed:
            self._note([place], [started, perf_counter_ns()])

    def _forward(self, step: Step, arena: Arena) -> list[Value]:
        """Return what a layer gives, in memory that the next kernels do not write to."""
        inputs = [self._value(slot, arena) for slot in step.inputs]
        with np.errstate(all="ignore"):  # inf and nan are results like any other
            if not step.is_checked:
                check_step(step, inputs, self._max_bytes)
            return [_out_of(arena, value) for value in step.layer.forward(inputs)]

    def _typed(self, slot: int, value: Value) -> Value:
        """Return a tensor that kernels computed as float32 as what its operand carries."""
        dtype = self._program.dtypes.get(slot)
        return (
            value if dtype is None or not isinstance(value, np.ndarray) else value.astype(dtype, copy=False)
        )

    def _value(self, slot: int, arena: Arena) -> Value:
        return self._typed(slot, self._seen(slot, self._program.exports.get(slot), arena))

    def _observed(self, slot: int, place: Observable, arena: Arena) -> Value:
        value = self._typed(slot, self._seen(slot, place.view, arena))
        if not isinstance(value, np.ndarray):
            return value
        if place.is_bf16:
            return _numbers_of_pairs(value)
        if place.integers is None:
            return value
        scale, channels = place.integers
        return _real(value, scale, channels)

    def _seen(self, slot: int, view: View | None, arena: Arena) -> Value:
        if view is None:
            return self.values[slot]  # type: ignore[no-any-return]  # values holds what operands carry
        return _array(view, self._memory(view.buffer, arena))

    def _memory(self, buffer: Buffer, arena: Arena) -> Array:
        """Return the elements of a buffer."""
        if buffer.kind is BufferKind.ARENA:
            return arena.memory[self._program.offsets[buffer] :].view(np.float32)
        if buffer.load is not None:
            return buffer.load().reshape(-1)
        array = row_by_row(self.values[buffer.slot])
        if array.size != buffer.size:  # views would look beyond its end
            raise LayerError(
                f"a tensor of shape {array.shape} came where {buffer.size} elements were planned"
            )
        return array.reshape(-1)

    def _note(self, owners: Sequence[int], timestamps: Sequence[int]) -> None:
        """Add up the times of the kernels that work for one operator."""
        for owner, began, ended in zip(owners, timestamps, timestamps[1:], strict=False):
            first, took = self.timestamps.get(owner, (began, 0))
            self.timestamps[owner] = (first, took + ended - began)

    def _raise_stopped(self, place: int, reason: str | None) -> None:
        operator = self._program.plan.steps[place].operator
        raise stopped_before(operator.type, operator.name, reason)


def _array(view: View, memory: Array) -> Array:
    """Return a tensor as a read-only array."""
    steps = tuple(stride * WORD for stride in view.strides)
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, steps, writeable=False)


def _real(words: Array, scale: TensorScale, channels: int) -> Array:
    """Dequantize integers, four channels to an element of axis 1, to float32."""
    last = np.ascontiguousarray(np.moveaxis(words, 1, -1))
    integers = last.view(np.uint8)[..., :channels]
    return np.moveaxis(scale.real(integers), -1, 1)


def _numbers_of_pairs(words: Array) -> Array:
    """Convert pairs of bfloat16, two channels to an element of axis 1, to float32."""
    last = np.ascontiguousarray(np.moveaxis(words, 1, -1))
    return np.moveaxis((last.view(np.uint16).astype(np.uint32) << 16).view(np.float32), -1, 1)


def _out_of(arena: Arena, value: Value) -> Value:
    """Return a value that shares no memory with the arena: the next kernels write there."""
    if isinstance(value, tuple):
        return tuple(_out_of(arena, item) for item in value)
    if isinstance(value, list):
        return [_out_of(arena, item) for item in value]
    if isinstance(value, np.ndarray) and np.may_share_memory(value, arena.memory):
        return value.copy()
    return value
