"""Compiled programs of one graph: an LRU cache by input shapes."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

import numpy as np

from engine.compiler.emit.target import host_target
from engine.compiler.emit.weight_files import weight_files
from engine.compiler.memory.arena import BlockPool
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.assembler import assembling, compile_plan
from engine.compiler.program.background import compile_in_background
from engine.compiler.program.checker import Checker
from engine.compiler.program.dynamic_program import DynamicProgram, dynamic_program
from engine.compiler.program.dynamic_programs import DynamicPrograms, dynamic_precision, is_only_a_fallback
from engine.compiler.program.faults import FAULTS
from engine.compiler.program.hotness import Hotness
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.loss import is_within_accuracy_budget
from engine.compiler.program.lru import Lru
from engine.compiler.program.program import Program
from engine.compiler.program.program_cache import InputKey, ProgramCache
from engine.compiler.program.verification_cache import VerificationCache
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.errors import BuildTimeoutError, CompileError
from engine.model.build_clock import BuildClock
from engine.model.dynamic_axes import NO_DYNAMIC_AXES, DynamicAxes
from engine.precision import LOSS_TOLERATED, Precision
from engine.run.executor import PROGRAMS_KEPT, Compilation
from engine.run.plan import InputSpecs, Plan, Planner
from engine.run.verification import Refusal, Verification
from engine.spec import TensorSpec

FIRST_COST = 0.5
"""Expected compile time in seconds before the first program."""
_MAX_WITHOUT_GAIN = 512
"""Maximum cached inputs whose program for BF16 would be in float32 (LRU)."""
_NEWEST_PART = 0.3
"""Weight of the latest program in the moving average of compile times."""


class Programs:
    """Compiles and verifies plans at the first use of their shapes. Thread-safe.

    All programs share packed weights and the memory of runs: a run takes any free block that is large enough. Programs
    compiled in the background have a separate cache, and evict no other.

    Args:
        inputs: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        kept: maximum programs in the cache (LRU).
        verifies: whether a program is compared with the reference implementation before it is used.
        verification_cache: programs that an earlier process verified; None for no cache.
        max_seconds: maximum compile time of a program in seconds, without verification; None for no limit.
        precision: precision of matrix products.
        tolerance: accuracy budget of `AUTO`.
        axes: dynamic axes, whose lengths vary together: dynamic-shape programs support F32 and INT8, and are the
            fallback where a program for one size is faster: BF16, INT8 on processors with matrix registers, and
            numbers and sizes of pictures.

    Attributes:
        precisions: precision of operators by name, in the program compiled last; F32 if absent.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        leaving: Sequence[str],
        threads: int,
        kept: int = PROGRAMS_KEPT,
        *,
        verifies: bool = True,
        verification_cache: VerificationCache | None = None,
        max_seconds: float | None = None,
        precision: Precision = Precision.F32,
        tolerance: float = LOSS_TOLERATED,
        axes: DynamicAxes = NO_DYNAMIC_AXES,
    ) -> None:
        self._inputs = tuple(inputs)
        self._leaving = tuple(leaving)
        self._threads = threads
        self._checker = Checker(inputs, leaving, verifies=verifies, verification_cache=verification_cache)
        self._max_seconds = max_seconds
        self._precision = precision
        self._has_dynamic_images = axes.has_pictures
        self._of_pictures = axes.of_pictures
        self._dynamic_is_fallback = self._of_pictures or is_only_a_fallback(precision)
        self._tolerance = tolerance
        self._timed_out: Lru[InputSpecs, BuildTimeoutError] = Lru(kept)
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._known: Lru[InputKey, Program | None] = Lru(kept)
        self._background = ProgramCache()
        self._hotness = Hotness()
        self._planner: Planner | None = None
        self._cost = FIRST_COST
        self._compiled = 0
        self._blocks = BlockPool()
        self._packed = PackedStore(weight_files())
        self._dynamic = DynamicPrograms(axes, self._make_dynamic, self._checker, self._blocks)
        self._without_bf16_gain: Lru[InputKey, None] = Lru(_MAX_WITHOUT_GAIN)
        self.precisions: Mapping[str, Precision] = {}

    @property
    def verification(self) -> Verification:
        """Verification results so far."""
        return self._checker.verification

    def known(self, arrays: Iterable[Array | TensorSpec]) -> Program | None:
        """Return the cached program for inputs like these arrays; None without one, or if it was refused."""
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
                program = self._make(inputs, plan)
                self._add(inputs, program)
            return program

    def check_time(self, inputs: InputSpecs) -> None:
        """Check that compilation for such inputs did not time out.

        Raises:
            BuildTimeoutError: it did.
        """
        with self._lock:
            error = self._timed_out.use(inputs)
        if error is not None:
            raise error

    def note_run(self, inputs: InputSpecs, planner: Planner, seconds: float) -> None:
        """Count a run of the reference implementation, and start background compilation if its shape is hot.

        Args:
            inputs: shape and dtype of each input.
            planner: makes the plan.
            seconds: duration of the run.
        """
        if self._look_up(_key(inputs))[0]:  # refused, or no kernel supports any of it
            return
        if _key(inputs) in self._without_bf16_gain and self._is_dynamic(inputs):
            return  # its program would be no faster
        self._planner = planner
        is_dynamic = self._dynamic.note(inputs) is not None
        if self._hotness.note(inputs, seconds, self._cost) or is_dynamic:
            compile_in_background(self)

    def next(self) -> Callable[[], None] | None:
        """Return a task that compiles the program of the hottest shape; None without any, or without room."""
        wanted, planner = self._dynamic.wanted, self._planner
        if wanted is not None and planner is not None:
            return lambda: self.create_dynamic(wanted, planner)
        inputs = self._hotness.hottest(self._cost)
        with self._lock:
            has_place = self._background.has_place
        if inputs is None or planner is None or not has_place:
            check = self._dynamic.next_check()
            return None if check is None else lambda: self._check_in_background(check)
        return lambda: self._compile_in_background(inputs, planner)

    def _check_in_background(self, check: Callable[[], None]) -> None:
        with self._compiling:  # one verification at a time
            check()

    def shared(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the instance of a dynamic-shape program for such inputs; None without one.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        program = None if self._dynamic_is_fallback else self._find_dynamic(inputs, planner)
        if program is not None:
            self._hotness.forget(inputs)
        return program

    def fallback(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the dynamic-shape program that is the fallback until a faster one is compiled, in F32 or INT8.

        None without one, or if dynamic-shape programs are not a fallback.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        if not self._dynamic_is_fallback:
            return None
        return self._dynamic.look_up(_key(inputs))[1] or self._find_dynamic(inputs, planner)

    def _find_dynamic(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        program = self._dynamic.find(inputs, planner)
        if program is not None:
            compile_in_background(self)  # for verification at this length
        return program

    def create_dynamic(self, family: InputSpecs, planner: Planner) -> None:
        """Build the dynamic-shape program of a family of inputs, unless it exists or is impossible.

        Args:
            family: see `DynamicAxes`.
            planner: makes plans.
        """
        with self._compiling:
            try:
                self._dynamic.create(family, planner)
            except FAULTS as error:
                reason = f"the compiler failed: {type(error).__name__}: {error}"
                self._checker.refuse(
                    Refusal(inputs=family, operator=None, type=None, fused=(), difference=None, reason=reason)
                )

    def prepare_dynamic(self, inputs: InputSpecs, planner: Planner) -> None:
        """Build the first dynamic-shape program of the graph, those of pictures and their batches in the background.

        One that is a fallback for the sake of precision is built when it is needed.
        """
        family = self._dynamic.main_family(inputs)
        if family is None or not self._dynamic.is_empty:
            return
        if not self._dynamic_is_fallback:
            self.create_dynamic(family, planner)
        elif self._dynamic.note_pictures(family):
            batched = self._dynamic.main_family(inputs, has_batch=True)
            if batched is not None:
                self._dynamic.note_pictures(batched)
            self._planner = planner
            compile_in_background(self)

    def needs_dynamic(self, inputs: InputSpecs) -> InputSpecs | None:
        """Count a run whose program would be compiled; returns the family to build a program for instead, if any."""
        return None if self._dynamic_is_fallback else self._dynamic.note(inputs)

    def _make_dynamic(self, plans: Iterable[Plan]) -> DynamicProgram:
        precision = dynamic_precision(self._precision)
        selector = Selector(
            host_target(),
            self._threads,
            self._packed,
            precision,
            is_dynamic=True,
            has_dynamic_images=self._has_dynamic_images,
        )
        with np.errstate(all="ignore"):
            made = dynamic_program(plans, self._leaving, selector, self._clock())
        self._compiled += 1
        return made

    def _compile_in_background(self, inputs: InputSpecs, planner: Planner) -> None:
        self._hotness.forget(inputs)
        with self._compiling:
            if self._look_up(_key(inputs))[0]:
                return
            plan = planner(inputs)
            if self._rounds_nothing(inputs, plan):
                return
            program = self._make(inputs, plan)
            with self._lock:
                self._background.add(_key(inputs), program)

    def _is_dynamic(self, inputs: InputSpecs) -> bool:
        """Whether a dynamic-shape program serves such inputs."""
        return self._dynamic.look_up(_key(inputs))[1] is not None

    def _rounds_nothing(self, inputs: InputSpecs, plan: Plan) -> bool:
        """Whether a program for such inputs would be in float32, like the dynamic-shape one that serves them."""
        may_round = self._precision in (Precision.BF16, Precision.AUTO)
        if not may_round or self._of_pictures or not self._is_dynamic(inputs):
            return False
        selector = Selector(host_target(), self._threads, self._packed, Precision.BF16)
        try:
            with (
                np.errstate(all="ignore"),
                assembling(plan, self._slots(plan), selector, self._clock()) as made,
            ):
                calls = [call for call, _ in made.calls]
        except FAULTS:  # reported by its compilation
            return False
        if any(call.precision is Precision.BF16 for call in calls):
            return False
        self._without_bf16_gain.put(_key(inputs), None)
        return True

    def _clock(self) -> BuildClock:
        return BuildClock(self._max_seconds, "compiling")

    @property
    def compilation(self) -> Compilation:
        """Numbers of compiled and waiting programs."""
        waiting, not_compiled = self._hotness.count(self._cost)
        return Compilation(compiled=self._compiled, waiting=waiting, not_compiled=not_compiled)

    def _look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        with self._lock:
            try:
                program = self._known[key]
            except KeyError:
                found = self._background.look_up(key)
                return found if found[0] or self._dynamic_is_fallback else self._dynamic.look_up(key)
            self._known.move_to_end(key)
            return True, program

    def _add(self, inputs: InputSpecs, program: Program | None) -> None:
        with self._lock:
            self.precisions = self.precisions if program is None else program.precisions_by_name
            self._known.put(_key(inputs), program)

    def _make(self, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a verified program, and record its compile time."""
        started = perf_counter()
        program = self._choose(inputs, plan)
        seconds = perf_counter() - started
        self._cost = seconds if not self._compiled else self._cost + (seconds - self._cost) * _NEWEST_PART
        self._compiled += 1
        if program is not None:
            # only now: verification fills the memory with NaN
            program.arenas.share(self._blocks)
        return program

    def _choose(self, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a verified program; of several precisions, the fastest within the accuracy budget."""
        if self._precision is not Precision.AUTO:
            return self._make_in(self._precision, inputs, plan)
        rounded = self._make_in(Precision.BF16, inputs, plan)
        if rounded is not None and not rounded.precisions:
            return rounded
        plain = self._make_in(Precision.F32, inputs, plan)
        if rounded is None or plain is None:
            return plain
        is_better = is_within_accuracy_budget(
            rounded, plain, dict(zip(self._inputs, inputs, strict=True)), self._leaving, self._tolerance
        )
        return rounded if is_better else plain

    def _make_in(self, precision: Precision, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a verified program of one precision."""
        stage = "the compiler"
        try:
            program = self._compile(plan, precision)
            if program is None:
                return None
            stage = "verification"
            return program if self._checker.passes(program, inputs) else None
        except FAULTS as error:
            if isinstance(error, BuildTimeoutError):
                with self._lock:
                    self._timed_out.put(inputs, error)
            what = "" if isinstance(error, CompileError | BuildTimeoutError) else f"{type(error).__name__}: "
            reason = f"{stage} failed: {what}{error}"
            self._checker.refuse(
                Refusal(inputs=inputs, operator=None, type=None, fused=(), difference=None, reason=reason)
            )
            return None

    def _slots(self, plan: Plan) -> list[int]:
        return [plan.slots[name] for name in self._leaving]

    def _compile(self, plan: Plan, precision: Precision) -> Program | None:
        # constants may be out of range here as in a run
        with np.errstate(all="ignore"):
            program = compile_plan(
                plan, self._slots(plan), host_target(), self._threads, self._packed, self._clock(), precision
            )
        return (
            program
            if any(isinstance(instruction, NativeSteps) for instruction in program.instructions)
            else None
        )


def _key(inputs: Iterable[TensorSpec | Array]) -> InputKey:
    return tuple([(of.shape, of.dtype) for of in inputs])
