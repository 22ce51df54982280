"""What runs a built graph: the interface that numpy layers and compiled programs have in common."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from engine.dtypes import Array
from engine.footprint import Footprint
from engine.plan import Plan
from engine.run import RunResult, StopCheck
from engine.spec import TensorSpec
from engine.trace import TraceLevel
from engine.verification import Verification

PROGRAMS_KEPT = 16
"""Programs kept per graph by default, one per combination of input shapes."""

InputSpecs: TypeAlias = tuple[TensorSpec, ...]
"""Shape and dtype of each input of a graph, in their order."""

Planner: TypeAlias = Callable[[InputSpecs], Plan]
"""Makes the plan of a run on such inputs, or returns the one that it made before."""


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

    def observable(self, inputs: InputSpecs) -> Mapping[str, str]:
        """Tell, for each operand, at which operand it can be seen in a run on such inputs.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
        """

    @property
    def verification(self) -> Verification:
        """What came of comparing compiled programs with the numpy layers so far."""
