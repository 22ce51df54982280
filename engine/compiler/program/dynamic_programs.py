"""Dynamic-shape programs of one graph, and their instances for single lengths."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakMethod

from engine.compiler.emit.target import host_target
from engine.compiler.memory.block_pool import BlockPool
from engine.compiler.memory.region import RegionError
from engine.compiler.program.checker import Checker
from engine.compiler.program.dynamic_program import DynamicProgram, MisfitError, PlanAt
from engine.compiler.program.program import Program
from engine.compiler.program.program_cache import InputKey, ProgramCache
from engine.errors import CompileError, KuiperError
from engine.model.dynamic_axes import DynamicAxes
from engine.precision import Precision
from engine.run.plan import InputSpecs, Planner
from engine.spec import TensorSpec

CHECKED = (2, 13, 40, 71)
"""Lengths at which a dynamic-shape program is verified before its first use: none that it was built for."""
MAX_DYNAMIC = 8
"""Maximum dynamic-shape programs of a graph, one per batch size."""
_MOST_NOTED = 64
"""Maximum batch sizes without a program whose lengths are counted."""
_MOST_PROGRAMS = 128
_MOST_BYTES = 32 << 20
_CALL_BYTES = 3 << 10
"""Measured bytes of a call in a program for one length: objects of program and plan; the code is shared."""
_MOST_CHECKS = 8
"""Lengths of the first runs at which a dynamic-shape program is verified again, in the background."""

Maker = Callable[[PlanAt], DynamicProgram]
"""Builds a dynamic-shape program; raises what `dynamic_program` raises."""

_logger = logging.getLogger(__name__)


class DynamicPrograms:
    """Dynamic-shape programs by the part of the input types that does not depend on the length. Thread-safe.

    When full, programs in use are not evicted, and failed ones are not retried: clients that cycle through more batch
    sizes would otherwise recompile all of them again and again.

    Args:
        axes: the dynamic axes of the inputs.
        make: builds a dynamic-shape program; a method of the object that owns this one.
        checker: verifies programs.
        blocks: memory of runs, shared by all programs of the graph.
    """

    def __init__(self, axes: DynamicAxes, make: Maker, checker: Checker, blocks: BlockPool) -> None:
        self._axes = axes
        self._make = WeakMethod(make)  # its object owns this one: a cycle would keep the weights of the graph
        self._checker = checker
        self._blocks = blocks
        self._lock = threading.Lock()
        self._programs: OrderedDict[InputSpecs, DynamicProgram | None] = OrderedDict()
        self._created_at: dict[InputSpecs, int] = {}
        self._lengths: OrderedDict[InputSpecs, set[int]] = OrderedDict()
        self._by_length = ProgramCache(_MOST_PROGRAMS, _MOST_BYTES, _CALL_BYTES)
        self._unchecked: dict[InputSpecs, Program] = {}
        self._checks_left: dict[InputSpecs, int] = {}

    def look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        """Return whether a program for such inputs is cached, and which."""
        if not self._axes.by_input:
            return False, None
        with self._lock:
            return self._by_length.look_up(key)

    def find(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the instance of a dynamic-shape program for such inputs; None without one.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        split = self._axes.split(inputs)
        found = None if split is None else self._programs.get(split[0])
        if split is None or found is None:
            return None
        plan = planner(inputs)
        try:
            program = found.at(plan)
        except (MisfitError, RegionError, CompileError) as error:
            _logger.debug("no program for length %d: %s", split[1], error)
            return None
        program.arenas.share(self._blocks)
        with self._lock:
            if self._programs.get(split[0]) is not found:  # it was refused meanwhile
                return None
            self._by_length.add(_key(inputs), program)
            if self._checks_left.get(split[0], 0):
                self._checks_left[split[0]] -= 1
                self._unchecked[inputs] = program
        return program

    def note(self, inputs: InputSpecs) -> bool:
        """Count a run on inputs without a program; returns whether a dynamic-shape program is to be built."""
        split = self._axes.split(inputs)
        if split is None:
            return False
        common, length = split
        with self._lock:
            if common in self._programs or not self._has_place():
                return False
            lengths = self._lengths.setdefault(common, set())
            lengths.add(length)
            if len(self._lengths) > _MOST_NOTED:
                self._lengths.popitem(last=False)
            return len(lengths) > 1

    @property
    def wanted(self) -> InputSpecs | None:
        """Inputs of a kind with several lengths so far and no dynamic-shape program; None without any."""
        with self._lock:
            for common, lengths in self._lengths.items():
                if len(lengths) > 1:
                    return self._axes.at(common, min(lengths))
        return None

    @property
    def is_empty(self) -> bool:
        """Whether there is no dynamic-shape program yet."""
        return not self._programs

    def create(self, inputs: InputSpecs, planner: Planner) -> None:
        """Build and verify the dynamic-shape program for inputs like these, once for all lengths.

        Raises:
            Exception: what a mistake in the compiler raises.
        """
        split = self._axes.split(inputs)
        if split is None:
            return
        common = split[0]
        with self._lock:
            self._lengths.pop(common, None)
            if common in self._programs or not self._has_place():
                return
            if len(self._programs) >= MAX_DYNAMIC:
                evicted = self._stale()[0]
                del self._programs[evicted]
                del self._created_at[evicted]
                self._checks_left.pop(evicted, None)
            self._programs[common] = None
            self._created_at[common] = self._by_length.clock
        make = self._make()
        if make is None:
            return  # so is the graph
        try:
            made = make(lambda length: planner(self._axes.at(common, length)))
            if self._agrees(made, common, planner):
                self._checks_left[common] = _MOST_CHECKS
                self._programs[common] = made
        except (MisfitError, RegionError) as error:
            _logger.info("no dynamic-shape program for %s, each length needs its own: %s", common, error)

    def _has_place(self) -> bool:
        """Whether there is room for one more; the lock is held."""
        return len(self._programs) < MAX_DYNAMIC or bool(self._stale())

    def _stale(self) -> list[InputSpecs]:
        """Return the keys of dynamic-shape programs that are not in use, oldest first; the lock is held."""
        splits = [self._axes.split([TensorSpec(*each) for each in key]) for key in self._by_length.in_use]
        in_use = {split[0] for split in splits if split is not None}
        return [
            common
            for common, made in self._programs.items()
            if made is not None
            and common not in in_use
            and self._by_length.is_stale(self._created_at[common])
        ]

    def _agrees(self, made: DynamicProgram, common: InputSpecs, planner: Planner) -> bool:
        """Whether a dynamic-shape program agrees with the reference implementation at some lengths."""
        for length in CHECKED:
            inputs = self._axes.at(common, length)
            try:
                plan = planner(inputs)
            except KuiperError:  # the model does not take that length
                continue
            if not self._checker.passes(made.at(plan), inputs):
                return False
        return True

    def next_check(self) -> Callable[[], None] | None:
        """Return a task that verifies the program for a length of an earlier run; None without one."""
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
        common, _ = split
        dynamic_program = self._programs.get(common)
        # a separate instance, as verification fills its memory with NaN, which no run may read
        if dynamic_program is None or self._checker.passes(dynamic_program.at(program.plan), inputs):
            return
        with self._lock:
            self._programs[common] = None
            self._checks_left.pop(common)
            self._by_length = ProgramCache(_MOST_PROGRAMS, _MOST_BYTES, _CALL_BYTES)
            self._unchecked.clear()


def dynamic_precision(precision: Precision) -> Precision:
    """Return the precision of dynamic-shape programs for a requested one: none supports bf16."""
    return precision if precision is Precision.INT8 else Precision.F32


def is_only_a_fallback(precision: Precision) -> bool:
    """Whether a dynamic-shape program is only a fallback until the much faster program for a length is compiled.

    Kernels with runtime dimensions multiply in vectors, never in matrix registers.
    """
    return dynamic_precision(precision) is not precision or (
        precision is Precision.INT8 and host_target().has_tiles
    )


def _key(inputs: InputSpecs) -> InputKey:
    return tuple([(of.shape, of.dtype) for of in inputs])
