"""Executor of compiled programs."""

from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from weakref import WeakKeyDictionary

from engine.compiler.program.execution import NativeRun
from engine.compiler.program.kernel_run import KernelRun, kernel_run
from engine.compiler.program.observation import Records, RunObserver
from engine.compiler.program.program import Program
from engine.compiler.program.programs import Programs
from engine.compiler.program.tracing import Tracer
from engine.dtypes import Array
from engine.errors import RunStoppedError
from engine.precision import Precision
from engine.run.executor import Compilation, Executor, Footprint, RunOptions
from engine.run.plan import InputSpecs, Planner
from engine.run.run import Run, RunResult
from engine.run.stop import StopSignal
from engine.run.trace import TraceLevel
from engine.run.verification import Verification
from engine.spec import tensor_spec


class NativeExecutor:
    """Runs the compiled programs of a graph; see `engine.run.executor.Executor`.

    Args:
        programs: compiles, verifies and caches the programs.
        layers: the reference implementation, for inputs without a program, or none yet.
        plan: makes plans.
        outputs: names of the operands that leave the graph.
        max_run_bytes: maximum bytes of the results of a layer whose output shapes are known only at run time.
    """

    def __init__(
        self,
        programs: Programs,
        layers: Executor,
        plan: Planner,
        outputs: Sequence[str],
        max_run_bytes: int,
    ) -> None:
        self._programs = programs
        self._layers = layers
        self._plan = plan
        self._outputs = tuple(outputs)
        self._max_run_bytes = max_run_bytes
        self._kernel_runs: WeakKeyDictionary[Program, KernelRun | None] = WeakKeyDictionary()
        self._tracers: WeakKeyDictionary[Program, Tracer] = WeakKeyDictionary()

    def run(self, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        """Run the program for inputs like these, or the reference implementation without one.

        An observed run uses the same kernels, and pauses where a requested tensor is complete.
        """
        program = self._program_of(inputs, options.waits)
        if program is not None:
            return self._run_program(program, inputs, options)
        return self._layers.run(inputs, options) if options.waits else self._run_fallback(inputs, options)

    def _run_program(self, program: Program, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        if program.guards and not program.takes(inputs):
            return self._layers.run(inputs, options)
        level = options.level
        if options.capture or level >= TraceLevel.STATISTICS:
            return self._run_observed(program, inputs, options)
        stop = options.stop
        if not level and (stop is None or isinstance(stop, StopSignal)):
            kernels = self._kernel_run(program)
            if kernels is not None:
                return RunResult(kernels.execute(inputs, stop))
        run = NativeRun(program, stop, bool(level), self._max_run_bytes)
        started = perf_counter_ns()
        outputs = run.execute(inputs, self._outputs)
        return RunResult(outputs, self._tracer(program).trace(run, started) if level else None)

    def _run_fallback(self, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        """Run the fallback of a program, in higher precision or the reference implementation, and count the run."""
        specs = tuple(map(tensor_spec, inputs.values()))
        program = self._programs.fallback(specs, self._plan)
        started = perf_counter_ns()
        try:
            if program is None:
                result = self._layers.run(inputs, options)
            else:
                result = self._run_program(program, inputs, options)
        except RunStoppedError:  # a lower bound of its time
            self._note_run(specs, started)
            raise
        self._note_run(specs, started)
        return result

    def _note_run(self, specs: InputSpecs, started: int) -> None:
        self._programs.note_run(specs, self._plan, (perf_counter_ns() - started) / 1e9)

    def prepare(self, inputs: InputSpecs) -> Footprint | None:
        """Compile and verify the program for such inputs; None if no kernel can do any of it, or it is refused.

        Raises:
            LayerError: a layer cannot run on the shapes that would reach it.
            BuildTimeoutError: compiling takes too long; runs on such inputs use the reference implementation.
        """
        program = self._programs.find(inputs, self._plan(inputs))
        self._programs.prepare_dynamic(inputs, self._plan)
        if program is None:
            self._programs.check_time(inputs)
            return None
        return program.footprint

    def is_compiled(self, inputs: InputSpecs) -> bool:
        """Return whether a program for such inputs is cached; the call counts as a use of it."""
        return self._programs.known(inputs) is not None

    def observable(self, inputs: InputSpecs) -> Mapping[str, str]:
        """Return where each operand can be observed: one that stays in registers, at its kernel's result."""
        program = self._programs.find(inputs, self._plan(inputs))
        return self._layers.observable(inputs) if program is None else program.observable

    @property
    def verification(self) -> Verification:
        """Verification results so far."""
        return self._programs.verification

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """In what the products of operators are computed, by name, in the program compiled last; F32 where left out."""
        return self._programs.precisions

    @property
    def compilation(self) -> Compilation:
        """Numbers of compiled and waiting programs."""
        return self._programs.compilation

    def _program_of(self, inputs: Mapping[str, Array], waits: bool) -> Program | None:
        """Return the program for inputs like these arrays.

        None if no kernel can do any of it, if it is refused, or if it is not compiled yet and the run does not wait.
        """
        known = self._programs.known(inputs.values())
        if known is not None:
            return known
        specs = tuple(map(tensor_spec, inputs.values()))
        shared = self._programs.shared(specs, self._plan)
        if shared is not None or not waits:
            return shared
        family = self._programs.needs_dynamic(specs)
        if family is not None:
            self._programs.create_dynamic(family, self._plan)
            shared = self._programs.shared(specs, self._plan)
        return shared or self._programs.find(specs, self._plan(specs))

    def _run_observed(self, program: Program, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        level, capture, stop, _ = options
        records = Records(capture, level)
        watched = program.plan.slots if level >= TraceLevel.STATISTICS else capture
        observer = RunObserver(program, watched, records.look)
        run = NativeRun(program, stop, bool(level), self._max_run_bytes, observer)
        started = perf_counter_ns()
        outputs = run.execute(inputs, self._outputs)
        missing = [name for name in watched if name not in records.seen]
        if missing:  # they never leave a kernel's registers: only the reference implementation stores them
            kept = [name for name in capture if name in missing]
            rest = Run(program.plan, max(level, TraceLevel.ON), kept, stop, self._max_run_bytes)
            records.complete(rest.execute(inputs, self._outputs))
        trace = self._tracer(program).trace(run, started, records.operands) if level else None
        return RunResult(outputs, trace, records.captured, records.captured_by)

    def _kernel_run(self, program: Program) -> KernelRun | None:
        try:
            return self._kernel_runs[program]
        except KeyError:
            made = self._kernel_runs[program] = kernel_run(program, self._outputs)
            return made

    def _tracer(self, program: Program) -> Tracer:
        tracer = self._tracers.get(program)
        if tracer is None:
            tracer = self._tracers[program] = Tracer(program)
        return tracer
