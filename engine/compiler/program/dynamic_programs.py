"""Dynamic-shape programs of one graph, and their instances for single sizes."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from weakref import WeakMethod

from engine.compiler.emit.target import host_target
from engine.compiler.memory.arena import BlockPool
from engine.compiler.memory.region import RegionError
from engine.compiler.program.checker import Checker
from engine.compiler.program.dynamic_program import DynamicProgram, MisfitError
from engine.compiler.program.lru import Lru
from engine.compiler.program.program import Program
from engine.compiler.program.program_cache import InputKey, ProgramCache
from engine.errors import CompileError, KuiperError
from engine.model.dynamic_axes import DynamicAxes, Extents
from engine.precision import Precision
from engine.run.plan import InputSpecs, Plan, Planner
from engine.spec import TensorSpec

SAMPLES = (
    Extents(3, 7, (96, 160)),
    Extents(5, 19, (224, 288)),
    Extents(2, 37, (320, 192)),
    Extents(4, 67, (352, 416)),
    Extents(6, 11, (448, 576)),
    Extents(7, 13, (640, 768)),
    Extents(8, 17, (48, 80)),
    Extents(9, 23, (28, 36)),
    Extents(10, 5, (12, 20)),
)
"""Extents that kernels are selected for, in order of preference.

None of the lengths is likely to be an extent of the model.
"""
CHECKED = (
    Extents(2, 2, (64, 96)),
    Extents(3, 13, (160, 128)),
    Extents(2, 40, (192, 320)),
    Extents(3, 71, (20, 44)),
)
"""Extents at which a dynamic-shape program is verified before its first use."""
MAX_DYNAMIC = 8
"""Maximum dynamic-shape programs of a graph, one per family of inputs."""
_MAX_NOTED = 64
"""Maximum families without a program whose inputs are counted (LRU)."""
_MAX_PROGRAMS = 128
_MAX_BYTES = 32 << 20
_CALL_BYTES = 3 << 10
"""Measured bytes of a call in a program for one size: objects of program and plan; the code is shared."""
_MAX_CHECKS = 8
"""Sizes of the first runs at which a dynamic-shape program is verified again, in the background."""

Maker = Callable[[Iterable[Plan]], DynamicProgram]
"""Builds a dynamic-shape program; raises what `dynamic_program` raises."""

_logger = logging.getLogger(__name__)


class DynamicPrograms:
    """Dynamic-shape programs by family of inputs; see `DynamicAxes`. Thread-safe.

    When full, programs in use are not evicted: clients that cycle through more picture sizes would otherwise recompile
    all of them again and again.

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
        self._programs: dict[InputSpecs, DynamicProgram | None] = {}
        self._created_at: dict[InputSpecs, int] = {}
        self._noted: Lru[InputSpecs, set[InputSpecs]] = Lru(_MAX_NOTED)
        self._by_size = ProgramCache(_MAX_PROGRAMS, _MAX_BYTES, _CALL_BYTES)
        self._unchecked: dict[InputSpecs, Program] = {}
        self._checks_left: dict[InputSpecs, int] = {}

    def look_up(self, key: InputKey) -> tuple[bool, Program | None]:
        """Return whether a program for such inputs is cached, and which."""
        if not self._axes.by_input:
            return False, None
        with self._lock:
            return self._by_size.look_up(key)

    def find(self, inputs: InputSpecs, planner: Planner) -> Program | None:
        """Return the instance of a dynamic-shape program for such inputs; None without one.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """
        family = self._axes.family(inputs)
        if family is None:
            return None
        found = self._programs.get(family)
        if found is None:
            return None
        plan = planner(inputs)
        try:
            program = found.at(plan)
        except (MisfitError, RegionError, CompileError) as error:
            _logger.debug("no instance of a dynamic-shape program for %s: %s", inputs, error)
            return None
        program.arenas.share(self._blocks)
        with self._lock:
            if self._programs.get(family) is not found:  # it was refused meanwhile
                return None
            self._by_size.add(_key(inputs), program)
            if self._checks_left.get(family, 0):
                self._checks_left[family] -= 1
                self._unchecked[inputs] = program
        return program

    def note(self, inputs: InputSpecs) -> InputSpecs | None:
        """Count a run on inputs without a program; returns the family to build a dynamic-shape program for, if any.

        One is built for the second size of sequences, and for the first of pictures.
        """
        family = self._axes.family(inputs)
        if family is None:
            return None
        with self._lock:
            if family in self._programs or not self._has_place():
                return None
            sizes = self._noted.setdefault(family, set())
            sizes.add(inputs)
            self._noted.put(family, sizes)
        return family if self._is_due(sizes) else None

    def note_pictures(self, family: InputSpecs) -> bool:
        """Ask for the program of pictures; returns whether their number or size is what varies."""
        if not self._axes.of_pictures:
            return False
        with self._lock:
            self._noted.setdefault(family, set())
        return True

    def _is_due(self, sizes: set[InputSpecs]) -> bool:
        return len(sizes) > 1 or self._axes.of_pictures

    @property
    def wanted(self) -> InputSpecs | None:
        """A family to build a dynamic-shape program for; None without any."""
        with self._lock:
            return next((family for family, sizes in self._noted.items() if self._is_due(sizes)), None)

    @property
    def is_empty(self) -> bool:
        """Whether there is no dynamic-shape program yet."""
        return not self._programs

    def main_family(self, inputs: InputSpecs, has_batch: bool = False) -> InputSpecs | None:
        """Return the family to prepare for inputs; see `DynamicAxes`."""
        return self._axes.main_family(inputs, has_batch)

    def create(self, family: InputSpecs, planner: Planner) -> None:
        """Build and verify the dynamic-shape program of a family, unless there is one, or it is impossible.

        Raises:
            Exception: what a mistake in the compiler raises.
        """
        with self._lock:
            self._noted.pop(family, None)
            if family in self._programs or not self._has_place():
                return
            if len(self._programs) >= MAX_DYNAMIC:
                self._evict(self._stale()[0])
            self._programs[family] = None
            self._created_at[family] = self._by_size.clock
        make = self._make()
        if make is None:
            return  # so is the graph
        try:
            made = make(plan for _, plan in self._plans(family, SAMPLES, planner))
            if not self._is_right(made, self._plans(family, CHECKED, planner)):
                return
        except (MisfitError, RegionError) as error:
            _logger.info("no dynamic-shape program for %s, each size needs its own: %s", family, error)
            return
        with self._lock:
            self._checks_left[family] = _MAX_CHECKS
            self._programs[family] = made

    def _is_right(self, made: DynamicProgram, plans: Iterable[tuple[InputSpecs, Plan]]) -> bool:
        """Whether a program passes verification at all extents that it supports.

        Raises:
            MisfitError: it supports none.
        """
        misfit: MisfitError | None = None
        checked = 0
        for inputs, plan in plans:
            try:
                program = made.at(plan)
            except (
                MisfitError
            ) as error:  # an axis of one element, for example: runs on such inputs have their own
                misfit = error
                continue
            if not self._checker.passes(program, inputs):
                return False
            checked += 1
        if not checked and misfit is not None:
            raise misfit
        return True

    def _has_place(self) -> bool:
        """Whether there is room for one more; the lock is held."""
        return len(self._programs) < MAX_DYNAMIC or bool(self._stale())

    def _stale(self) -> list[InputSpecs]:
        """Return the families whose programs are not in use, oldest first; the lock is held."""
        in_use = {self._axes.family([TensorSpec(*each) for each in key]) for key in self._by_size.in_use}
        return [
            family
            for family, made in self._programs.items()
            if made is not None and family not in in_use and self._by_size.is_stale(self._created_at[family])
        ]

    def _evict(self, family: InputSpecs) -> None:
        del self._programs[family]
        del self._created_at[family]
        self._checks_left.pop(family, None)

    def _plans(
        self, family: InputSpecs, samples: Iterable[Extents], planner: Planner
    ) -> Iterator[tuple[InputSpecs, Plan]]:
        """Yield some inputs of a family and their plans, as far as the model supports them."""
        for inputs in self._axes.members(family, samples):
            try:
                yield inputs, planner(inputs)
            except KuiperError:  # for example too long for the model
                continue

    def next_check(self) -> Callable[[], None] | None:
        """Return a task that verifies the program for a size of an earlier run; None without one."""
        with self._lock:
            if not self._unchecked:
                return None
            inputs = next(iter(self._unchecked))
            program = self._unchecked.pop(inputs)
        return lambda: self._check(inputs, program)

    def _check(self, inputs: InputSpecs, program: Program) -> None:
        family = self._axes.family(inputs)
        made = None if family is None else self._programs.get(family)
        # a separate instance, as verification fills its memory with NaN, which no run may read
        if family is None or made is None or self._checker.passes(made.at(program.plan), inputs):
            return
        with self._lock:
            self._programs[family] = None
            self._by_size = ProgramCache(_MAX_PROGRAMS, _MAX_BYTES, _CALL_BYTES)
            self._unchecked.clear()


def dynamic_precision(precision: Precision) -> Precision:
    """Return the precision of dynamic-shape programs for a requested one: none supports bf16."""
    return precision if precision in (Precision.INT8, Precision.INT4) else Precision.F32


def is_only_a_fallback(precision: Precision) -> bool:
    """Whether a dynamic-shape program is only a fallback until the much faster program for a length is compiled.

    Kernels with runtime dimensions multiply in vectors, never in matrix registers.
    """
    return dynamic_precision(precision) is not precision or (
        precision is Precision.INT8 and host_target().has_tiles
    )


def _key(inputs: InputSpecs) -> InputKey:
    return tuple([(of.shape, of.dtype) for of in inputs])
