"""Runs a graph's plans as compiled programs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter_ns
from weakref import WeakKeyDictionary

from engine.backend import PROGRAMS_KEPT
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.observation import Observer, Records
from engine.compiler.program.program import Program
from engine.compiler.program.programs import Programs
from engine.compiler.program.tracing import Tracer
from engine.dtypes import Array
from engine.plan import Plan
from engine.run import Run, RunResult, StopCheck
from engine.spec import TensorSpec, tensor_spec
from engine.trace import TraceLevel
from engine.verification import Verification


class NativeBackend:
    """The compiled programs of one graph, and how they are run.

    Args:
        inputs: operand names of the graph's inputs.
        leaving: names of the operands that leave the graph.
        threads: threads that share a run.
        max_run_bytes: how much the results of a layer whose shapes only the run tells may take.
        programs_kept: programs that are kept, least recently used dropped first.
        verifies: whether a program is compared with the numpy layers before it is used.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        leaving: Sequence[str],
        threads: int,
        max_run_bytes: int,
        programs_kept: int = PROGRAMS_KEPT,
        *,
        verifies: bool = True,
    ) -> None:
        self._leaving = tuple(leaving)
        self._max_run_bytes = max_run_bytes
        self._programs = Programs(inputs, self._leaving, threads, programs_kept, verifies=verifies)
        self._tracers: WeakKeyDictionary[Program, Tracer] = WeakKeyDictionary()

    def program(self, inputs: tuple[TensorSpec, ...], plan: Plan) -> Program | None:
        """Return the program of a plan, compiled and verified the first time.

        None where kernels can do nothing of it, or it is refused.
        """
        return self._programs.find(inputs, plan)

    def program_of(
        self, inputs: Collection[Array], plan: Callable[[tuple[TensorSpec, ...]], Plan], waits: bool
    ) -> Program | None:
        """Return the program for inputs like these arrays.

        None where kernels can do nothing of it, it is refused, or it is not there yet and nobody is to wait for it.

        Args:
            inputs: arrays in the order of the graph's inputs.
            plan: shapes -> their plan; called where no program is known yet.
            waits: whether one that is not there is compiled and verified now, rather than beside.
        """
        known = self._programs.known(inputs)
        if known is not None:
            return known
        specs = tuple(map(tensor_spec, inputs))
        find = self._programs.find if waits else self._programs.find_ready
        return find(specs, plan(specs))

    @property
    def verification(self) -> Verification:
        """What came of verification so far."""
        return self._programs.verification

    def run(
        self,
        program: Program,
        inputs: Mapping[str, Array],
        level: TraceLevel,
        capture: Collection[str],
        stop: StopCheck | None,
    ) -> RunResult:
        """Run a program; where it is to be looked into, the same kernels run, stopped where there is something to see.

        Raises:
            LayerError: a layer cannot run on what reached it.
            RunStoppedError: the stop check said so.
        """
        if capture or level >= TraceLevel.STATISTICS:
            return self._run_observed(program, inputs, level, capture, stop)
        run = NativeRun(program, stop, bool(level), self._max_run_bytes)
        started = perf_counter_ns()
        outputs = run.execute(inputs, self._leaving)
        return RunResult(outputs, self._tracer(program).trace(run, started) if level else None)

    def _run_observed(
        self,
        program: Program,
        inputs: Mapping[str, Array],
        level: TraceLevel,
        capture: Collection[str],
        stop: StopCheck | None,
    ) -> RunResult:
        records = Records(capture, level)
        watched = program.plan.slots if level >= TraceLevel.STATISTICS else capture
        run = NativeRun(
            program, stop, bool(level), self._max_run_bytes, Observer(program, watched, records.look)
        )
        started = perf_counter_ns()
        outputs = run.execute(inputs, self._leaving)
        missing = [name for name in watched if name not in records.seen]
        if missing:  # they never leave a kernel's registers: only layer by layer do they come into being
            kept = [name for name in capture if name in missing]
            rest = Run(program.plan, max(level, TraceLevel.ON), kept, stop, self._max_run_bytes)
            records.complete(rest.execute(inputs, self._leaving))
        trace = self._tracer(program).trace(run, started, records.operands) if level else None
        return RunResult(outputs, trace, records.captured, records.captured_by)

    def _tracer(self, program: Program) -> Tracer:
        tracer = self._tracers.get(program)
        if tracer is None:
            tracer = self._tracers[program] = Tracer(program)
        return tracer
