"""Executor of a built graph: the common interface of the reference implementation and compiled programs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.dtypes import Array
from engine.errors import BuildError
from engine.model.dynamic_axes import NO_DYNAMIC_AXES, DynamicAxes
from engine.precision import LOSS_TOLERATED, Precision
from engine.run.plan import MAX_RUN_BYTES, InputSpecs
from engine.run.run import RunResult, StopCheck
from engine.run.trace import TraceLevel
from engine.run.verification import Verification, Verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Memory footprint of a compiled program.

    Attributes:
        arena_bytes: bytes of intermediate tensors of one run, laid out by lifetime.
        least_bytes: maximum bytes of them that are in use at once; no layout takes less.
        scratch_bytes: bytes of scratch memory of one run.
        constant_bytes: bytes of packed weights.
        native: operators whose work kernels do.
        numpy: operators that numpy runs.
    """

    arena_bytes: int
    least_bytes: int
    scratch_bytes: int
    constant_bytes: int
    native: int
    numpy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """Numbers of compiled and waiting programs of a graph.

    Attributes:
        compiled: programs compiled so far, including refused and evicted ones.
        waiting: combinations of input shapes that wait for the compiler or for room in the cache.
        not_compiled: recent combinations that are too rare, or too fast in numpy, to be compiled.
    """

    compiled: int = 0
    waiting: int = 0
    not_compiled: int = 0


MAX_THREADS = 1024
"""Threads that may share a run; each has scratch memory of its own."""

PROGRAMS_KEPT = 32
"""Default size of a graph's program cache, one program per combination of input shapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """Options common to all runs of a graph.

    Attributes:
        threads: threads that share a run's compiled kernels.
        max_run_bytes: maximum bytes of live tensors in a run.
        programs_kept: maximum compiled programs in the cache.
        verify: when a program is compared with the reference implementation.
        max_build_seconds: maximum compile time of a program in seconds; None for no limit.
        precision: precision of matrix products.
        tolerance: loss that `AUTO` may take.
        dynamic_axes: the dynamic axes of the inputs.

    Raises:
        BuildError: that number of threads or programs makes no sense.
    """

    threads: int = 1
    max_run_bytes: int = MAX_RUN_BYTES
    programs_kept: int = PROGRAMS_KEPT
    verify: Verify = Verify.LOAD
    max_build_seconds: float | None = None
    precision: Precision = Precision.F32
    tolerance: float = LOSS_TOLERATED
    dynamic_axes: DynamicAxes = NO_DYNAMIC_AXES

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MAX_THREADS:
            raise BuildError(f"threads: {self.threads}; expected 1 to {MAX_THREADS}")
        if self.programs_kept < 1:
            raise BuildError(f"programs_kept: {self.programs_kept}; expected at least 1")


class RunOptions(NamedTuple):
    """Options of one run.

    Attributes:
        level: the trace level.
        capture: names of operands whose values to return.
        stop: called before each layer; a text stops the run.
        waits: whether the run waits until a program for its shapes is compiled and verified.
    """

    level: TraceLevel = TraceLevel.OFF
    capture: Collection[str] = ()
    stop: StopCheck | None = None
    waits: bool = True


class Executor(Protocol):
    """Runs a built graph. Thread-safe."""

    def run(self, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        """Run the graph on arrays by operand name, in the order of its inputs.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check stopped the run.
        """

    def prepare(self, inputs: InputSpecs) -> Footprint | None:
        """Prepare runs on such inputs; None if nothing is compiled.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
            BuildTimeoutError: compiling takes too long.
        """

    def is_compiled(self, inputs: InputSpecs) -> bool:
        """Return whether a program for such inputs is cached; the call counts as a use of it."""

    def observable(self, inputs: InputSpecs) -> Mapping[str, str]:
        """Return, for each operand, the operand at which a run on such inputs can observe it.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """

    @property
    def compilation(self) -> Compilation:
        """Numbers of compiled and waiting programs."""

    @property
    def verification(self) -> Verification:
        """Results so far of comparing compiled programs with the reference implementation."""

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """In what the products of operators are computed, by name, in the program compiled last; F32 where left out."""
