"""The compiled programs of one graph, one per combination of input shapes, the latest kept."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.build_clock import BuildClock
from engine.compiler.emit.target import host_target
from engine.compiler.memory.region import RegionError
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.assembler import compile_plan
from engine.compiler.program.background import compile_in_background
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.loss import is_worth_its_loss
from engine.compiler.program.program import Program
from engine.compiler.program.verifier import verify
from engine.dtypes import Array
from engine.errors import BuildTimeoutError, CompileError
from engine.executor import PROGRAMS_KEPT, InputSpecs
from engine.plan import Plan
from engine.precision import LOSS_TOLERATED, Precision
from engine.spec import TensorSpec
from engine.verification import REFUSALS_KEPT, Refusal, Verification

_Key = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
"""Shape and dtype of each input. Every run looks its program up by them, and tuples are hashed faster than specs."""

_FAULTS = (
    CompileError,
    BuildTimeoutError,
    RegionError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
"""Errors that a mistake in the compiler raises: they are reported, and the numpy layers run instead of the program."""

_logger = logging.getLogger(__name__)


class Programs:
    """Compiles plans the first time that their shapes come, and verifies them. Safe to use from any thread.

    Each program has arenas of its own; all share packed weights.

    Args:
        inputs: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        kept: programs that are kept, least recently used dropped first.
        verifies: whether a program is compared with the numpy layers before it is used.
        max_seconds: how long compiling a program may take, verification not counted; None for as long as it takes.
        precision: what kernels round the operands of products to.
        tolerance: loss that `AUTO` may take.

    Attributes:
        verification: what came of it so far.
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
        max_seconds: float | None = None,
        precision: Precision = Precision.F32,
        tolerance: float = LOSS_TOLERATED,
    ) -> None:
        self._inputs = tuple(inputs)
        self._leaving = tuple(leaving)
        self._threads = threads
        self._kept = kept
        self._verifies = verifies
        self._max_seconds = max_seconds
        self._precision = precision
        self._tolerance = tolerance
        self._given_up: OrderedDict[InputSpecs, BuildTimeoutError] = OrderedDict()
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._known: OrderedDict[_Key, Program | None] = OrderedDict()
        self._awaited: set[InputSpecs] = set()
        self._packed = PackedStore()
        self.verification = Verification()
        self.precisions: Mapping[str, Precision] = {}

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
                program = self._make(inputs, plan)
                self._add(inputs, program)
            return program

    def check_given_up(self, inputs: InputSpecs) -> None:
        """Check that compiling for such inputs was not given up.

        Raises:
            BuildTimeoutError: it was.
        """
        with self._lock:
            error = self._given_up.get(inputs)
        if error is not None:
            raise error

    def _note_given_up(self, inputs: InputSpecs, error: BuildTimeoutError) -> None:
        with self._lock:
            self._given_up[inputs] = error
            if len(self._given_up) > self._kept:
                self._given_up.popitem(last=False)

    def find_ready(self, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a program as `find` does if it exists; else have it compiled in the background, and return None."""
        is_known, program = self._look_up(_key(inputs))
        if is_known:
            return program
        with self._lock:
            if inputs in self._awaited:
                return None
            self._awaited.add(inputs)
        if not compile_in_background(lambda: self._find_in_background(inputs, plan)):
            self._forget_awaited(inputs)  # too many wait: a later run asks again
        return None

    def _find_in_background(self, inputs: InputSpecs, plan: Plan) -> None:
        try:
            self.find(inputs, plan)
        finally:
            self._forget_awaited(inputs)

    def _forget_awaited(self, inputs: InputSpecs) -> None:
        with self._lock:
            self._awaited.discard(inputs)

    def _look_up(self, key: _Key) -> tuple[bool, Program | None]:
        with self._lock:
            try:
                program = self._known[key]
            except KeyError:
                return False, None
            self._known.move_to_end(key)
            return True, program

    def _add(self, inputs: InputSpecs, program: Program | None) -> None:
        with self._lock:
            self.precisions = self.precisions if program is None else program.precisions_by_name
            self._known[_key(inputs)] = program
            if len(self._known) > self._kept:
                self._known.popitem(last=False)

    def _make(self, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a program that may be used; of several precisions, the fastest whose loss is tolerated."""
        if self._precision is not Precision.AUTO:
            return self._make_in(self._precision, inputs, plan)
        rounded = self._make_in(Precision.BF16, inputs, plan)
        if rounded is not None and not rounded.precisions:
            return rounded
        plain = self._make_in(Precision.F32, inputs, plan)
        if rounded is None or plain is None:
            return plain
        is_better = is_worth_its_loss(
            rounded, plain, dict(zip(self._inputs, inputs, strict=True)), self._leaving, self._tolerance
        )
        return rounded if is_better else plain

    def _make_in(self, precision: Precision, inputs: InputSpecs, plan: Plan) -> Program | None:
        """Return a program of a precision that may be used."""
        stage = "the compiler"
        try:
            program = self._compile(plan, precision)
            if program is None or not self._verifies:
                return program
            stage = "verification"
            verdict = verify(program, inputs, self._inputs, self._leaving)
        except _FAULTS as error:
            if isinstance(error, BuildTimeoutError):
                self._note_given_up(inputs, error)
            what = "" if isinstance(error, CompileError | BuildTimeoutError) else f"{type(error).__name__}: "
            reason = f"{stage} failed: {what}{error}"
            self._refuse(
                Refusal(inputs=inputs, operator=None, type=None, fused=(), difference=None, reason=reason)
            )
            return None
        known = self.verification
        self.verification = replace(
            known,
            checked=known.checked + verdict.is_checked,
            unchecked=known.unchecked + (not verdict.is_checked),
        )
        if verdict.refusal is not None:
            self._refuse(verdict.refusal)
            return None
        return program

    def _refuse(self, refusal: Refusal) -> None:
        known = self.verification
        kept = (*known.refused, refusal)[-REFUSALS_KEPT:]
        self.verification = replace(known, refused=kept, refused_count=known.refused_count + 1)
        _logger.warning("a compiled program is not used, the numpy layers run in its place: %s", refusal)

    def _compile(self, plan: Plan, precision: Precision) -> Program | None:
        slots = [plan.slots[name] for name in self._leaving]
        # constants may be out of range here as in a run
        with np.errstate(all="ignore"):
            clock = BuildClock(self._max_seconds, "compiling")
            program = compile_plan(plan, slots, host_target(), self._threads, self._packed, clock, precision)
        return (
            program
            if any(isinstance(instruction, NativeSteps) for instruction in program.instructions)
            else None
        )


def _key(inputs: Iterable[TensorSpec | Array]) -> _Key:
    return tuple([(of.shape, of.dtype) for of in inputs])
