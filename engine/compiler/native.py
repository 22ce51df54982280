"""Runs a graph's plans as compiled programs."""

from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from weakref import WeakKeyDictionary

from engine.backend import PROGRAMS_KEPT
from engine.compiler.execution import NativeRun
from engine.compiler.program import Program
from engine.compiler.programs import Programs
from engine.compiler.tracing import Tracer
from engine.dtypes import Array
from engine.plan import Plan
from engine.run import RunResult, StopCheck
from engine.spec import TensorSpec


class NativeBackend:
    """The compiled programs of one graph, and how they are run.

    Args:
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        max_run_bytes: how much the results of a layer whose shapes only the run tells may take.
        programs_kept: programs that are kept, least recently used dropped first.
    """

    def __init__(
        self, leaving: Sequence[str], threads: int, max_run_bytes: int, programs_kept: int = PROGRAMS_KEPT
    ) -> None:
        self._leaving = tuple(leaving)
        self._max_run_bytes = max_run_bytes
        self._programs = Programs(self._leaving, threads, programs_kept)
        self._tracers: WeakKeyDictionary[Program, Tracer] = WeakKeyDictionary()

    def program(self, inputs: tuple[TensorSpec, ...], plan: Plan) -> Program | None:
        """Return the program of a plan, compiled the first time; None where kernels can do nothing of it."""
        return self._programs.find(inputs, plan)

    def run(
        self, program: Program, inputs: Mapping[str, Array], is_traced: bool, stop: StopCheck | None
    ) -> RunResult:
        """Run a program.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check said so.
        """
        run = NativeRun(program, stop, is_traced, self._max_run_bytes)
        started = perf_counter_ns()
        outputs = run.execute(inputs, self._leaving)
        return RunResult(outputs, self._tracer(program).trace(run, started) if is_traced else None)

    def _tracer(self, program: Program) -> Tracer:
        tracer = self._tracers.get(program)
        if tracer is None:
            tracer = self._tracers[program] = Tracer(program)
        return tracer
