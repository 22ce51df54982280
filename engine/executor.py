"""What runs a built graph: the interface that numpy layers and compiled programs have in common."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from engine.compilation import Compilation
from engine.dtypes import Array
from engine.dynamic_axes import NO_OPEN_AXES, DynamicAxes
from engine.errors import BuildError
from engine.footprint import Footprint
from engine.plan import MAX_RUN_BYTES, Plan
from engine.precision import LOSS_TOLERATED, Precision
from engine.run import RunResult, StopCheck
from engine.spec import TensorSpec
from engine.trace import TraceLevel
from engine.verification import Verification, Verify

MAX_THREADS = 1024
"""Threads that may share a run; each has scratch memory of its own."""

PROGRAMS_KEPT = 32
"""Programs kept per graph by default, one per combination of input shapes."""

InputSpecs: TypeAlias = tuple[TensorSpec, ...]
"""Shape and dtype of each input of a graph, in their order."""

Planner: TypeAlias = Callable[[InputSpecs], Plan]
"""Makes the plan of a run on such inputs, or returns the one that it made before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """What is the same in all runs of a graph.

    Attributes:
        threads: threads that share a run's compiled kernels.
        max_run_bytes: how much the tensors alive at once in a run may take.
        programs_kept: compiled programs that are kept.
        verify: when a program is compared with the numpy layers.
        max_build_seconds: how long compiling a program may take; None for as long as it takes.
        precision: what kernels round the operands of products to.
        tolerance: loss that `AUTO` may take.
        dynamic_axes: which axes of the inputs vary together.

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
    dynamic_axes: DynamicAxes = NO_OPEN_AXES

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MAX_THREADS:
            raise BuildError(f"threads: {self.threads}; expected 1 to {MAX_THREADS}")
        if self.programs_kept < 1:
            raise BuildError(f"programs_kept: {self.programs_kept}; expected at least 1")


class RunOptions(NamedTuple):
    """What a caller asks of one run.

    Attributes:
        level: how much to record.
        capture: names of operands whose values to return.
        stop: called before each layer; a text stops the run.
        waits: whether the run waits until a program for its shapes is compiled and verified.
    """

    level: TraceLevel = TraceLevel.OFF
    capture: Collection[str] = ()
    stop: StopCheck | None = None
    waits: bool = True


class Executor(Protocol):
    """Runs a built graph. Safe to use from any number of threads at once."""

    def run(self, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        """Run the graph on arrays by operand name, in the order of its inputs.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check asked for it.
        """

    def prepare(self, inputs: InputSpecs) -> Footprint | None:
        """Do what can be done before the first run on such inputs; None where nothing of it is compiled.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
            BuildTimeoutError: compiling takes too long.
        """

    def is_compiled(self, inputs: InputSpecs) -> bool:
        """Tell whether a program for such inputs is at hand; asking counts as using it."""

    def observable(self, inputs: InputSpecs) -> Mapping[str, str]:
        """Tell, for each operand, at which operand it can be seen in a run on such inputs.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """

    @property
    def compilation(self) -> Compilation:
        """What was compiled so far, and what may be."""

    @property
    def verification(self) -> Verification:
        """What came of comparing compiled programs with the numpy layers so far."""

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """In what the products of operators are computed, by name, in the program compiled last; F32 where left out."""
