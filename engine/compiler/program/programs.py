"""The compiled programs of one graph, one per combination of input shapes, the latest kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

import numpy as np

from engine.build_clock import BuildClock
from engine.compilation import Compilation
from engine.compiler.emit.packed_files import packed_files
from engine.compiler.emit.target import host_target
from engine.compiler.memory.block_pool import BlockPool
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.assembler import compile_plan
from engine.compiler.program.background import compile_beside
from engine.compiler.program.checker import Checker
from engine.compiler.program.compile_throttle import ThrottledClock, pace
from engine.compiler.program.dynamic_program import DynamicProgram, PlanAt, dynamic_program
from engine.compiler.program.dynamic_programs import DynamicPrograms, dynamic_precision, is_only_a_fallback
from engine.compiler.program.faults import FAULTS
from engine.compiler.program.hotness import Hotness
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.kept_programs import InputKey, KeptPrograms
from engine.compiler.program.loss import is_worth_its_loss
from engine.compiler.program.program import Program
from engine.compiler.program.shapes_without_bf16_gain import ShapesWithoutBf16Gain
from engine.compiler.program.timed_out_shapes import TimedOutShapes
from engine.compiler.program.verification_cache import VerificationCache
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.dynamic_axes import NO_OPEN_AXES, DynamicAxes
from engine.errors import BuildTimeoutError, CompileError
from engine.executor import PROGRAMS_KEPT, InputSpecs, Planner
from engine.plan import Plan
from engine.precision import LOSS_TOLERATED, Precision
from engine.spec import TensorSpec
from engine.verification import Refusal, Verification

NewClock = Callable[[], BuildClock]
"""Makes the clock of one compilation."""

FIRST_COST = 0.5
"""Seconds that compiling is expected to take before any was."""
_NEWEST_PART = 0.3
"""How much the latest program counts in what the next is expected to take."""


class Programs:
    """Compiles plans the first time that their shapes come, and verifies them. Safe to use from any thread.

    All programs share packed weights, and the memory of runs: a run takes any that is large enough and not in use.
    Those that were compiled beside runs are kept apart, and displace no other.

    Args:
        inputs: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        kept: programs that are kept, least recently used dropped first.
        verifies: whether a program is compared with the numpy layers before it is used.
        marks: tell which programs were compared before, by another process, and need not be again; None for none.
        max_seconds: how long compiling a program may take, verification not counted; None for as long as it takes.
        precision: what kernels round the operands of products to.
        tolerance: loss that `AUTO` may take.
        axes: which axes of the inputs vary together: programs in F32 and INT8 may serve all their lengths, and stand in
            where those for one length are faster: in BF16, and in INT8 on processors with matrix registers.

    Attributes:
        given_up: inputs that compiling took too long for.
        precisions: in what operators are computed, by name, in the program compiled last; F32 for those left out.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        leaving: Sequence[str],
        threads: int,
        kept: int = PROGRAMS_KEPT,
        *,
        verifies: bool = True,
        marks: VerificationCache | None = None,
        max_seconds: float | None = None,
        precision: Precision = Precision.F32,
        tolerance: float = LOSS_TOLERATED,
        axes: DynamicAxes = NO_OPEN_AXES,
    ) -> None:
        self._inputs = tuple(inputs)
        self._leaving = tuple(leaving)
        self._threads = threads
        self._kept = kept
        self._checker = Checker(inputs, leaving, verifies=verifies, marks=marks)
        self._max_seconds = max_seconds
        self._precision = precision
        self._opens_stand_ins = is_only_a_fallback(precision)
        self._tolerance = tolerance
        self.given_up = TimedOutShapes(kept)
        self._paces = False
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._known: OrderedDict[InputKey, Program | None] = OrderedDict()
        self._beside = KeptPrograms()
        self._hotness = Hotness()
        self._planner: Planner | None = None
        self._cost = FIRST_COST
        self._compiled = 0
        self._blocks = BlockPool()
        self._packed = PackedStore(packed_files())
        self._openness = DynamicPrograms(axes, self._make_open, self._checker, self._blocks)
        self._without_bf16_gain = ShapesWithoutBf16Gain(leaving)
        self.precisions: Mapping[str, Precision] = {}

    @property
    def verification(self) -> Verification:
        """What came of verification so far."""
        return self._checker.verification

    def known(self, arrays: Iterable[Array | TensorSpec]) -> Program | None:
        """Return the program for inputs like these arrays; None where it is not there, or is known to be of no use."""
        return self._look_up(_key(arrays))[1]

    def find(self, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return the program of a plan for inputs of given shapes, compiled and verified the first time.

        None if no kernel can do any of it, or it is refused.
        """
        is_known, program = self._look_up(_key(inputs))
        if is_known:
            return program
        with self._compiling:
            is_known, program = self._look_up(_key(inputs))
            if not is_known:
                program = self._make(inputs, plan, lambda: BuildClock(self._max_seconds, "compiling"))
                self._add(inputs, program)
            return program

    def note_run(self, inputs: InputSpecs, planner: Planner, seconds: float) -> None:
        """Count a run of numpy layers that waited for no program; that is compiled beside runs once it is worth it.

        Args:
            inputs: shape and dtype of each input.
            planner: makes the plan.
            seconds: what the run took.
        """
        if self._look_up(_key(inputs))[0]:  # refused, or no kernel can do any of it
            return
        if _key(inputs) in self._without_bf16_gain and self._is_open(inputs):
            return
        self._planner = planner
        is_open = self._openness.note(inputs)
        if self._hotness.note(inputs, seconds, self._cost) or is_open:
            compile_beside(self)

    def next(self) -> Callable[[], None] | None:
        """Return what compiles the program that is worth most; None where none is, or there is no place for one."""
        wanted, planner = self._openness.wanted, self._planner
        if wanted is not None and planner is not None:
            return lambda: self.open(wanted, planner, is_beside=True)
        inputs = self._hotness.best(self._cost)
        with self._lock:
            has_place = self._beside.has_place
        if inputs is None or planner is None or not has_place:
            check = self._openness.next_check()
            return None if check is None else lambda: self._check_beside(check)
        return lambda: self._compile_beside(inputs, planner)

    def _check_beside(self, check: Callable[[], None]) -> None:
        with self._compiling:  # what came of checks is noted by one at a time
            check()

    def shared(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the program for such inputs that an open program makes at once; None where none serves them.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        program = None if self._opens_stand_ins else self._find_open(inputs, planner)
        if program is not None:
            self._hotness.forget(inputs)
        return program

    def stand_in(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return a program to be run in place of a faster one, until that is compiled: in F32, or in INT8 as well.

        None where there is no open one, or it is none that only stands in.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        if not self._opens_stand_ins:
            return None
        return self._openness.look_up(_key(inputs))[1] or self._find_open(inputs, planner)

    def _find_open(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        program = self._openness.find(inputs, planner)
        if program is not None:
            compile_beside(self)  # to be compared with the numpy layers
        return program

    def open(self, inputs: InputSpecs, planner: Planner, *, is_beside: bool = False) -> None:
        """Make the program for inputs like these of all lengths, if there is none, and there can be one.

        Args:
            inputs: of any length.
            planner: makes plans.
            is_beside: whether runs have the precedence over it.
        """
        with self._compiling:
            self._paces = is_beside
            try:
                self._openness.open(inputs, planner)
            except FAULTS as error:
                reason = f"the compiler failed: {type(error).__name__}: {error}"
                self._checker.refuse(
                    Refusal(inputs=inputs, operator=None, type=None, fused=(), difference=None, reason=reason)
                )

    def prepare_open(self, inputs: InputSpecs, planner: Planner) -> None:
        """Make the first open program of the graph; one that only stands in is made when lengths come."""
        if self._openness.is_empty and not self._opens_stand_ins:
            self.open(inputs, planner)

    def is_worth_opening(self, inputs: InputSpecs) -> bool:
        """Count a run that would have its program compiled; tells whether an open one is worth it by now."""
        return not self._opens_stand_ins and self._openness.note(inputs)

    def _make_open(self, plan_at: PlanAt) -> DynamicProgram:
        clock = self._throttled_clock() if self._paces else BuildClock(self._max_seconds, "compiling")
        precision = dynamic_precision(self._precision)
        selector = Selector(host_target(), self._threads, self._packed, precision, is_open=True)
        with np.errstate(all="ignore"):
            made = dynamic_program(plan_at, self._leaving, selector, clock)
        self._compiled += 1
        return made

    def _compile_beside(self, inputs: InputSpecs, planner: Planner) -> None:
        self._hotness.forget(inputs)
        with self._compiling:
            if self._look_up(_key(inputs))[0]:
                return
            plan = planner(inputs)
            if self._rounds_nothing(inputs, plan):
                return
            program = self._make(inputs, plan, self._throttled_clock)
            with self._lock:
                self._beside.add(_key(inputs), program)

    def _is_open(self, inputs: InputSpecs) -> bool:
        """Whether a program for all lengths serves such inputs."""
        return self._openness.look_up(_key(inputs))[1] is not None

    def _rounds_nothing(self, inputs: InputSpecs, plan: Plan) -> bool:
        """Whether a program for such inputs would be in float32, as that for all lengths is which serves them."""
        if not self._opens_stand_ins or self._precision is Precision.INT8 or not self._is_open(inputs):
            return False
        selector = Selector(host_target(), self._threads, self._packed, Precision.BF16)
        return self._without_bf16_gain.look(_key(inputs), plan, selector, self._throttled_clock())

    def _throttled_clock(self) -> BuildClock:
        return ThrottledClock(self._max_seconds, "compiling", pace)

    @property
    def compilation(self) -> Compilation:
        """What was compiled so far, and what may be."""
        waiting, not_worth = self._hotness.count(self._cost)
        return Compilation(compiled=self._compiled, waiting=waiting, not_worth=not_worth)

    def _look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        with self._lock:
            try:
                program = self._known[key]
            except KeyError:
                found = self._beside.look_up(key)
                return found if found[0] or self._opens_stand_ins else self._openness.look_up(key)
            self._known.move_to_end(key)
            return True, program

    def _add(self, inputs: InputSpecs, program: Program | None) -> None:
        with self._lock:
            self.precisions = self.precisions if program is None else program.precisions_by_name
            self._known[_key(inputs)] = program
            if len(self._known) > self._kept:
                self._known.popitem(last=False)

    def _make(self, inputs: InputSpecs, plan: Plan, clock: NewClock) -> Program | None:
        """Return a program that may be used, and note what it took to make it."""
        started = perf_counter()
        waited = pace.waited
        program = self._choose(inputs, plan, clock)
        seconds = max(0.0, perf_counter() - started - (pace.waited - waited))
        self._cost = seconds if not self._compiled else self._cost + (seconds - self._cost) * _NEWEST_PART
        self._compiled += 1
        if program is not None:
            # only now: verification fills the memory with NaN, which no run may take away
            program.arenas.share(self._blocks)
        return program

    def _choose(self, inputs: InputSpecs, plan: Plan, clock: NewClock) -> Program | None:
        """Return a program that may be used; of several precisions, the fastest whose loss is tolerated."""
        if self._precision is not Precision.AUTO:
            return self._make_in(self._precision, inputs, plan, clock())
        rounded = self._make_in(Precision.BF16, inputs, plan, clock())
        if rounded is not None and not rounded.precisions:
            return rounded
        plain = self._make_in(Precision.F32, inputs, plan, clock())
        if rounded is None or plain is None:
            return plain
        is_better = is_worth_its_loss(
            rounded, plain, dict(zip(self._inputs, inputs, strict=True)), self._leaving, self._tolerance
        )
        return rounded if is_better else plain

    def _make_in(
        self, precision: Precision, inputs: InputSpecs, plan: Plan, clock: BuildClock
    ) -> Program | None:
        """Return a program of a precision that may be used."""
        stage = "the compiler"
        try:
            program = self._compile(plan, precision, clock)
            if program is None:
                return None
            stage = "verification"
            return program if self._checker.passes(program, inputs) else None
        except FAULTS as error:
            if isinstance(error, BuildTimeoutError):
                self.given_up.note(inputs, error)
            what = "" if isinstance(error, CompileError | BuildTimeoutError) else f"{type(error).__name__}: "
            reason = f"{stage} failed: {what}{error}"
            self._checker.refuse(
                Refusal(inputs=inputs, operator=None, type=None, fused=(), difference=None, reason=reason)
            )
            return None

    def _compile(self, plan: Plan, precision: Precision, clock: BuildClock) -> Program | None:
        slots = [plan.slots[name] for name in self._leaving]
        # constants may be out of range here as in a run
        with np.errstate(all="ignore"):
            program = compile_plan(plan, slots, host_target(), self._threads, self._packed, clock, precision)
        return (
            program
            if any(isinstance(instruction, NativeSteps) for instruction in program.instructions)
            else None
        )


def _key(inputs: Iterable[TensorSpec | Array]) -> InputKey:
    return tuple([(of.shape, of.dtype) for of in inputs])
