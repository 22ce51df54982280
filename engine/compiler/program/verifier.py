"""Verifies a program: compares each kernel's results with what numpy computes from the same tensors.

The program runs once on a random input, observed. Each operator of kernels is then run by its reference layer on what
the program computed for its inputs, and the two results are compared: errors do not accumulate over layers, and the
operator at fault is found directly. Operators that numpy runs in the program too are the same and are not run again, so
that the whole costs one numpy run at the most. The arena holds NaN before: reads of unwritten memory show.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.memory.alignment import WORD
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.observation import RunObserver, kept
from engine.compiler.program.program import Program
from engine.compiler.program.trial import nudged, trial_inputs
from engine.dtypes import Array
from engine.errors import KuiperError
from engine.kernels.bfloat16 import operands_rounded
from engine.pnnx.mapped_pages import release_pages
from engine.precision import Precision
from engine.quantization.tensor_scale import TensorScale
from engine.run.plan import MAX_RUN_BYTES, Step
from engine.run.run import Run
from engine.run.verification import Refusal
from engine.spec import TensorSpec, Value, arrays_in

TOLERANCE = 1e-4
"""Largest difference that counts as rounding, of the largest absolute value: Winograd's convolutions come to 1e-5."""
ROUGH_TOLERANCE = 2.0**-6
"""The same for operators of several products whose intermediate results the kernels round elsewhere than the layer."""
_ROUNDINGS = 4.0
"""Maximum difference as a multiple of the effect of rounding on the layer's own results."""
_ROUGHEST = 2.0**-3
"""Upper limit of that difference, relative to the largest absolute value."""
_NUDGE = 2e-6
"""Perturbation of tensors, relative to the largest element, in the sensitivity test."""
_SENSITIVITY = 16.0
"""Maximum difference as a multiple of the effect of the perturbation."""
_PAIR_ROUNDING = 1.01 * 2.0**-8
"""Maximum relative error of storage in bfloat16."""
_AT_ONCE = 1 << 17
"""Elements per comparison block."""
_LEAST_FINITE = 0.25
"""Minimum finite share of a result: NaN, as of logarithms of negative numbers, cannot be compared."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of verification.

    Attributes:
        is_checked: whether an input was found on which the reference implementation runs.
        refusal: why the program must not be used; None where it may.
    """

    is_checked: bool
    refusal: Refusal | None = None


def verify(
    program: Program, inputs: Sequence[TensorSpec], names: Sequence[str], outputs: Sequence[str]
) -> Verdict:
    """Compare a program with the reference implementation on one input, on another if few results are finite.

    Args:
        program: the program.
        inputs: the input types.
        names: operand names of the inputs.
        outputs: names of the operands that leave the graph.
    """
    verdict = Verdict(False)
    for trial in trial_inputs(dict(zip(names, inputs, strict=True))):
        comparison = _Comparison(program, tuple(inputs))
        try:
            with np.errstate(all="ignore"):
                comparison.run(trial.arrays, outputs)
        except KuiperError as error:
            if not _runs_in_numpy(program, trial.arrays, outputs):
                continue  # the input is of another kind than the model takes
            reason = f"fails where the reference implementation runs: {error}"
            return Verdict(
                True,
                Refusal(
                    inputs=tuple(inputs), operator=None, type=None, fused=(), difference=None, reason=reason
                ),
            )
        is_second, verdict = verdict.is_checked, Verdict(True, comparison.refusal)
        if is_second or comparison.refusal is not None or comparison.is_conclusive:
            break
    return verdict


def _runs_in_numpy(program: Program, arrays: dict[str, Array], outputs: Sequence[str]) -> bool:
    try:
        Run(program.plan).execute(arrays, outputs)
    except KuiperError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """A result that never leaves the registers of its kernel, and what it is made of.

    Attributes:
        step: the operator.
        position: of the result among the operator's.
        sources: the operator's inputs, or how they are made.
    """

    step: Step
    position: int
    sources: "tuple[Value | _Made, ...]"

    def again(self, by: float) -> Value:
        """Compute the result from slightly perturbed tensors."""
        inputs = [
            _moved(source.again(by) if isinstance(source, _Made) else source, by) for source in self.sources
        ]
        return self.step.layer.forward(inputs)[self.position]


class _Comparison:
    """One run of a program, compared with the reference implementation.

    Attributes:
        refusal: the first operator that differs; None where none does.
        is_conclusive: whether enough of every result was finite, and so compared.
    """

    def __init__(self, program: Program, inputs: tuple[TensorSpec, ...]) -> None:
        self.refusal: Refusal | None = None
        self.is_conclusive = True
        self._program = program
        self._inputs = inputs
        self._names = program.plan.slots
        self._steps = [
            (place, step)
            for place, step in enumerate(program.plan.steps)
            if place in program.native and not step.is_input
        ]
        self._next = 0
        self._readers = Counter(slot for _, step in self._steps for slot in set(step.inputs))
        self._values: dict[int, Value] = {}
        self._made: dict[int, _Made] = {}
        self._packed = _packed_weights(program)

    def run(self, arrays: dict[str, Array], outputs: Sequence[str]) -> None:
        """Run the program on inputs by operand name.

        Raises:
            LayerError: a layer cannot run on what reached it.
        """
        self._poison()
        observer = RunObserver(self._program, self._names.keys(), self._look)
        NativeRun(self._program, None, False, MAX_RUN_BYTES, observer).execute(arrays, outputs)
        if self.refusal is None and self._next < len(self._steps):
            place, step = self._steps[self._next]
            self._refuse(place, step, None, "was not compared: the run did not show all of its operands")

    def _poison(self) -> None:
        """Fill the memory of the run with NaN."""
        arenas = self._program.arenas
        arena = arenas.take()
        arena.memory[: arena.memory.size // WORD * WORD].view(np.float32)[...] = np.nan
        arenas.give_back(arena)

    def _look(self, name: str, value: Value) -> None:
        """Take what the program computed, and compare what can be compared by now."""
        slot = self._names[name]
        self._values[slot] = value
        while self._next < len(self._steps) and self.refusal is None:
            place, step = self._steps[self._next]
            seen = self._program.observables.by_slot
            awaited = (each for each in (*step.inputs, *step.outputs) if each in seen)
            if not all(each in self._values for each in awaited):
                break
            if slot in step.inputs:
                self._keep(slot, value)
            self._compare(place, step)
            self._next += 1
        self._keep(slot, value)

    def _keep(self, slot: int, value: Value) -> None:
        """Copy a value that lies in the memory of the run, if it is still needed."""
        if self._values.get(slot) is value:
            self._values[slot] = kept(value)

    def _compare(self, place: int, step: Step) -> None:
        """Run the reference of a step on the program's inputs of it, and compare the two."""
        inputs = [self._values[slot] for slot in step.inputs]
        with operands_rounded(self._program.precisions.get(place) is Precision.BF16):
            exact = step.layer.unrounded(inputs)
        if any(slot not in self._program.observables.by_slot for slot in step.outputs):
            self._take_reference(step, exact)
        for slot, wanted in zip(step.outputs, exact, strict=True):
            if slot in self._program.observables.by_slot and self.refusal is None:
                self._judge(place, step, slot, wanted)
        kernel = self._program.fused_into.get(place, place)
        for weight in (*_weights(step), *self._packed.get(kernel, ())):
            release_pages(weight)
        self._readers.subtract(set(step.inputs))
        for slot in {*step.inputs, *step.outputs}:
            if not self._readers[slot]:
                self._values.pop(slot, None)
                self._made.pop(slot, None)

    def _take_reference(self, step: Step, exact: tuple[Value, ...]) -> None:
        """Take the layer's own results for those that never leave the registers of the kernel that it is fused with."""
        rounded = step.layer.rounded(exact) if step.layer.output_scales else exact
        for slot, value in zip(step.outputs, rounded, strict=True):
            if slot not in self._program.observables.by_slot:
                self._values[slot] = value
                self._made[slot] = _Made(step, step.outputs.index(slot), tuple(self._sources(step)))

    def _judge(self, place: int, step: Step, slot: int, wanted: Value) -> None:
        ours = self._values[slot]
        if not isinstance(ours, np.ndarray) or not isinstance(wanted, np.ndarray):
            return
        if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
            reason = f"gives {ours.dtype}{ours.shape}, the reference {wanted.dtype}{wanted.shape}"
            self._refuse(place, step, None, reason)
            return
        if wanted.size and np.isfinite(wanted).mean() < _LEAST_FINITE:
            self.is_conclusive = False
        step_size = 0.0
        if (grid := _scale_of(step, slot)) is not None:
            # both are rounded to the same steps: what lies near the middle of two may go either way
            wanted, step_size = np.clip(wanted, *grid.limits), grid.scale
        rounding = _PAIR_ROUNDING if self._program.observables.by_slot[slot].is_bf16 else 0.0
        tolerance = ROUGH_TOLERANCE if self._is_rough(place) else TOLERANCE
        allowed = tolerance * _largest(wanted)
        if _is_within(ours, wanted, step_size, rounding, allowed):
            return
        distance = _excess(ours, wanted, step_size, rounding)
        if self._is_rough(place):
            allowed = max(allowed, self._rough_limit(step, slot, wanted))
        if not self._is_rounding(step, slot, wanted, distance, allowed):
            self._report(place, step, ours, wanted)

    def _is_rough(self, place: int) -> bool:
        """Whether a step's kernel is one of several products, or does the step's work after those of another step."""
        program = self._program
        return not program.roughly_known.isdisjoint((place, program.fused_into.get(place, place)))

    def _rough_limit(self, step: Step, slot: int, wanted: Array) -> float:
        """Return the tolerance of results that are sensitive to rounded intermediate results.

        Where scores are large, or terms nearly cancel, rounding an operand moves results by more than its own part.
        """
        exact = self._again(step, step.outputs.index(slot), 0.0)
        both = np.isfinite(wanted) & np.isfinite(exact)
        moved = float(np.abs(wanted - exact).max(where=both, initial=0.0))
        return min(_ROUNDINGS * moved, _ROUGHEST * _largest(wanted))

    def _is_rounding(self, step: Step, slot: int, wanted: Array, distance: Array, allowed: float) -> bool:
        """Whether results are so sensitive to the last digits of their operands that the difference is inconclusive."""
        position = step.outputs.index(slot)
        wanted = self._again(step, position, 0.0)  # in float32: rounded, a little more or less may be much
        moved = [_distance(self._again(step, position, by), wanted) for by in (_NUDGE, -_NUDGE)]
        return bool((distance <= allowed + _SENSITIVITY * np.maximum(*moved)).all())

    def _again(self, step: Step, position: int, by: float) -> Array:
        """Compute a result again from slightly perturbed tensors, including those within its kernel."""
        again = _Made(step, position, tuple(self._sources(step))).again(by)
        return next(arrays_in(again))

    def _sources(self, step: Step) -> Iterator["Value | _Made"]:
        """Yield the inputs of a step: how those within its kernel are made, and the values of the others."""
        yield from (self._made.get(slot) or self._values[slot] for slot in step.inputs)

    def _report(self, place: int, step: Step, ours: Array, wanted: Array) -> None:
        distance, scale = _distance(ours, wanted), _largest(wanted)
        worst = float(distance.max())
        if not np.isfinite(worst):
            self._refuse(place, step, None, "gives numbers that are not finite where the reference is finite")
            return
        difference = worst / scale if scale else worst
        many = int((distance > TOLERANCE * scale).sum())
        share = f"{many} of {ours.size} places"
        reason = f"differs from the reference by {difference:.3g} of its largest value, in {share}"
        self._refuse(place, step, difference, reason)

    def _refuse(self, place: int, step: Step, difference: float | None, reason: str) -> None:
        program = self._program
        first = program.fused_into.get(place, place)
        group = [first, *program.fused.get(first, ())]
        names = [program.plan.steps[member].operator.name for member in group if member != place]
        if names:
            reason += f"; one kernel does it and {', '.join(names)}"
        self.refusal = Refusal(
            inputs=self._inputs,
            operator=step.operator.name,
            type=step.operator.type,
            fused=tuple(names),
            difference=difference,
            reason=reason,
        )


def _weights(step: Step) -> Iterator[Array]:
    """Yield the arrays that a layer computes with, besides its operands."""
    layer = step.layer
    yield from (value for value in layer.arguments.values() if isinstance(value, np.ndarray))
    if layer.int8 is not None:
        yield layer.int8.weights.integers


def _packed_weights(program: Program) -> dict[int, list[Array]]:
    """Return the weights that the kernels of each operator read, by its place."""
    packed: dict[int, list[Array]] = {}
    calls = iter(program.calls)
    for instruction in program.instructions:
        if isinstance(instruction, NativeSteps):
            for owner in instruction.owners:
                loads = (view.buffer.load for view in next(calls).arguments)
                packed.setdefault(owner, []).extend(load() for load in loads if load is not None)
    return packed


def _scale_of(step: Step, slot: int) -> TensorScale | None:
    """Return the integers that an operator's result is rounded to, None where it is not."""
    scales = step.layer.output_scales
    return scales[step.outputs.index(slot)] if scales else None


def _moved(value: Value, by: float) -> Value:
    return nudged(value, by) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value


def _distance(ours: Array, wanted: Array) -> Array:
    """Return the absolute differences, 0 where the wanted element is not finite, infinity where only ours is not."""
    finite = np.isfinite(wanted)
    distance = np.where(finite, np.abs(ours.astype(np.float64) - np.where(finite, wanted, 0)), 0.0)
    return np.where(np.isfinite(distance), distance, np.inf)


def _excess(ours: Array, wanted: Array, step_size: float, rounding: float) -> Array:
    """Return the absolute differences, less half a step and the part of each wanted element that rounding may take."""
    distance = np.maximum(_distance(ours, wanted) - step_size / 2, 0.0)
    if rounding:
        distance = np.maximum(distance - rounding * np.abs(np.nan_to_num(wanted)), 0.0)
    return distance


def _is_within(ours: Array, wanted: Array, step_size: float, rounding: float, allowed: float) -> bool:
    """Return whether all differences are allowed; see `_excess`."""
    pairs = zip(_parts(ours), _parts(wanted), strict=True)
    return all(bool((_excess(*pair, step_size, rounding) <= allowed).all()) for pair in pairs)


def _largest(array: Array) -> float:
    """Return the largest absolute value that is finite; 0 where none is."""
    return float(max(np.abs(part).max(where=np.isfinite(part), initial=0.0) for part in _parts(array)))


def _parts(array: Array) -> Iterator[Array]:
    """Yield the elements some at a time: computing with all at once would take ten times their memory."""
    flat = array.reshape(-1)
    yield from (flat[first : first + _AT_ONCE] for first in range(0, max(1, flat.size), _AT_ONCE))
