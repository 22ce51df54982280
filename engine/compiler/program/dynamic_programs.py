"""The programs of one graph that serve inputs of all lengths, and what was made of them for the lengths that came."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakMethod

from engine.compiler.emit.target import host_target
from engine.compiler.memory.block_pool import BlockPool
from engine.compiler.memory.region import RegionError
from engine.compiler.program.checker import Checker
from engine.compiler.program.dynamic_program import DynamicProgram, PlanAt
from engine.compiler.program.interpolation import MisfitError
from engine.compiler.program.kept_programs import InputKey, KeptPrograms
from engine.compiler.program.program import Program
from engine.dynamic_axes import DynamicAxes
from engine.errors import CompileError, KuiperError
from engine.executor import InputSpecs, Planner
from engine.precision import Precision
from engine.spec import TensorSpec

CHECKED = (2, 13, 40, 71)
"""Lengths at which an open program is compared with the numpy layers before it is used: none that it was built for.
"""
MOST_OPEN = 8
"""Open programs of a graph, one for each number of rows."""
_MOST_NOTED = 64
"""Numbers of rows whose lengths are remembered before anything is opened for them."""
_MOST_PROGRAMS = 128
_MOST_BYTES = 32 << 20
_CALL_BYTES = 3 << 10
"""What a call takes in a program for one length, as measured: objects of program and plan; the code is shared."""
_MOST_CHECKS = 8
"""Lengths of the first runs at which an open program is compared once more, beside runs."""

Maker = Callable[[PlanAt], DynamicProgram]
"""Makes an open program; raises what `dynamic_program` raises."""

_logger = logging.getLogger(__name__)


class DynamicPrograms:
    """Open programs by what inputs of all lengths have in common. Safe to use from any thread.

    Where there is no place, one whose programs are still in use is not given up for another, nor tried again what could
    not be opened: clients that go through more numbers of rows than that would have all compiled again and again.

    Args:
        axes: which axes of the inputs vary together.
        make: makes an open program; a method of the object that owns this one.
        checker: says whether a program may be used.
        blocks: memory of runs, shared by all programs of the graph.
    """

    def __init__(self, axes: DynamicAxes, make: Maker, checker: Checker, blocks: BlockPool) -> None:
        self._axes = axes
        self._make = WeakMethod(make)  # its object owns this one: a cycle would keep the weights of the graph
        self._checker = checker
        self._blocks = blocks
        self._lock = threading.Lock()
        self._open: OrderedDict[InputSpecs, DynamicProgram | None] = OrderedDict()
        self._opened_at: dict[InputSpecs, int] = {}
        self._lengths: OrderedDict[InputSpecs, set[int]] = OrderedDict()
        self._programs = KeptPrograms(_MOST_PROGRAMS, _MOST_BYTES, _CALL_BYTES)
        self._unchecked: dict[InputSpecs, Program] = {}
        self._checks_left: dict[InputSpecs, int] = {}

    def look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        """Return whether a program for such inputs is there, and which."""
        if not self._axes.by_input:
            return False, None
        with self._lock:
            return self._programs.look_up(key)

    def find(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the program for such inputs, of the open program that serves them; None where there is none.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        split = self._axes.split(inputs)
        found = None if split is None else self._open.get(split[0])
        if split is None or found is None:
            return None
        plan = planner(inputs)
        try:
            program = found.at(plan, split[1])
        except (MisfitError, RegionError, CompileError) as error:
            _logger.debug("no program for length %d: %s", split[1], error)
            return None
        program.arenas.share(self._blocks)
        with self._lock:
            if self._open.get(split[0]) is not found:  # it was refused meanwhile
                return None
            self._programs.add(_key(inputs), program)
            if self._checks_left.get(split[0], 0):
                self._checks_left[split[0]] -= 1
                self._unchecked[inputs] = program
        return program

    def note(self, inputs: InputSpecs) -> bool:
        """Count a run on inputs that nothing is compiled for; tells whether an open program is worth it by now."""
        split = self._axes.split(inputs)
        if split is None:
            return False
        common, length = split
        with self._lock:
            if common in self._open or not self._has_place():
                return False
            lengths = self._lengths.setdefault(common, set())
            lengths.add(length)
            if len(self._lengths) > _MOST_NOTED:
                self._lengths.popitem(last=False)
            return len(lengths) > 1

    @property
    def wanted(self) -> InputSpecs | None:
        """Inputs of a kind that came in several lengths, and that nothing was opened for; None where there are none."""
        with self._lock:
            for common, lengths in self._lengths.items():
                if len(lengths) > 1:
                    return self._axes.at(common, min(lengths))
        return None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was opened yet."""
        return not self._open

    def open(self, inputs: InputSpecs, planner: Planner) -> None:
        """Make, and verify, the open program for inputs like these of all lengths; once for all of them.

        Raises:
            Exception: what a mistake in the compiler raises.
        """
        split = self._axes.split(inputs)
        if split is None:
            return
        common = split[0]
        with self._lock:
            self._lengths.pop(common, None)
            if common in self._open or not self._has_place():
                return
            if len(self._open) >= MOST_OPEN:
                given_up = self._stale()[0]
                del self._open[given_up]
                del self._opened_at[given_up]
                self._checks_left.pop(given_up, None)
            self._open[common] = None
            self._opened_at[common] = self._programs.clock
        make = self._make()
        if make is None:
            return  # so is the graph
        try:
            made = make(lambda length: planner(self._axes.at(common, length)))
            if self._agrees(made, common, planner):
                self._checks_left[common] = _MOST_CHECKS
                self._open[common] = made
        except (MisfitError, RegionError) as error:
            _logger.info("each length of %s needs a program of its own: %s", common, error)

    def _has_place(self) -> bool:
        """Whether one more may be made; the lock is held."""
        return len(self._open) < MOST_OPEN or bool(self._stale())

    def _stale(self) -> list[InputSpecs]:
        """Return what the open programs serve that no run used lately, the eldest first; the lock is held."""
        splits = [self._axes.split([TensorSpec(*each) for each in key]) for key in self._programs.in_use]
        in_use = {split[0] for split in splits if split is not None}
        return [
            common
            for common, made in self._open.items()
            if made is not None and common not in in_use and self._programs.is_stale(self._opened_at[common])
        ]

    def _agrees(self, made: DynamicProgram, common: InputSpecs, planner: Planner) -> bool:
        """Whether an open program agrees with the numpy layers at some lengths."""
        for length in CHECKED:
            inputs = self._axes.at(common, length)
            try:
                plan = planner(inputs)
            except KuiperError:  # the model does not take that length
                continue
            if not self._checker.passes(made.at(plan, length), inputs):
                return False
        return True

    def next_check(self) -> Callable[[], None] | None:
        """Return what compares the program for a length that came with the numpy layers; None where none is to be."""
        with self._lock:
            if not self._unchecked:
                return None
            inputs = next(iter(self._unchecked))
            program = self._unchecked.pop(inputs)
        return lambda: self._check(inputs, program)

    def _check(self, inputs: InputSpecs, program: Program) -> None:
        split = self._axes.split(inputs)
        if split is None:
            return
        common, length = split
        dynamic_program = self._open.get(common)
        # of its own, as verification fills the memory with NaN, which no run may take
        if dynamic_program is None or self._checker.passes(dynamic_program.at(program.plan, length), inputs):
            return
        with self._lock:
            self._open[common] = None
            self._checks_left.pop(common)
            self._programs = KeptPrograms(_MOST_PROGRAMS, _MOST_BYTES, _CALL_BYTES)
            self._unchecked.clear()


def dynamic_precision(precision: Precision) -> Precision:
    """Return the precision of programs for all lengths in place of those in another: nothing rounds to bfloat16."""
    return precision if precision is Precision.INT8 else Precision.F32


def is_only_a_fallback(precision: Precision) -> bool:
    """Whether a program for all lengths is used only until that for a length is there, as this is much faster.

    What is told extents multiplies in vectors, never in matrix registers.
    """
    return dynamic_precision(precision) is not precision or (
        precision is Precision.INT8 and host_target().has_tiles
    )


def _key(inputs: InputSpecs) -> InputKey:
    return tuple([(of.shape, of.dtype) for of in inputs])
