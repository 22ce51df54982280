"""RuntimeGraph: reads a PNNX pair of files, binds layers once, runs many times."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from engine import pnnx
from engine.backend import Backend, choose_backend, entry_cache, make_executor
from engine.binding.registry import LayerRegistry, registry
from engine.dtypes import Array
from engine.errors import KuiperError, ParamError, StateError
from engine.int8_choice import choose_quantization
from engine.model.build import bind, declared_failures, refuse_contradictions
from engine.model.build_clock import BuildClock, checked_seconds
from engine.model.content import content_digest
from engine.model.dynamic_axes import dynamic_axes
from engine.model.model_folder import bin_beside
from engine.model.operator import RuntimeOperand, RuntimeOperator
from engine.model.ports import Inputs, Port, check_inputs, check_specs, declared_inputs
from engine.model.summary import operator_html, operator_table
from engine.model.topology import LinkedGraph, link_graph
from engine.precision import LOSS_TOLERATED, Precision, checked_tolerance, choose_precision
from engine.quantization.scheme import Quantization
from engine.run.executor import PROGRAMS_KEPT, Compilation, Executor, ExecutorOptions, Footprint, RunOptions
from engine.run.plan import MAX_RUN_BYTES, Plan, Planner, cached_planner
from engine.run.run import RunResult, StopCheck, check_capture
from engine.run.trace import TraceLevel, choose_level
from engine.run.verification import Verification, Verify, choose_verify
from engine.spec import TensorSpec


class GraphState(Enum):
    """Lifecycle states of a graph."""

    NEED_INIT = "NeedInit"
    NEED_BUILD = "NeedBuild"
    COMPLETE = "Complete"

    def has_reached(self, state: "GraphState") -> bool:
        """Return whether a graph in this state has come as far as another one."""
        return _ORDER.index(self) >= _ORDER.index(state)


_ORDER = tuple(GraphState)
"""A constant, as it is read several times in each run."""


_logger = logging.getLogger(__name__)


class RuntimeGraph:
    """A PNNX model that runs.

    `init()` reads the files (NeedInit -> NeedBuild), `build()` binds every operator to its layer (-> Complete; it
    calls `init()` where that was not done). A built graph never changes: `forward` may be called from any number
    of threads at once.

    Args:
        param_path: the `.param` file.
        bin_path: the `.bin` file; by default the one beside `param_path`, whose name may have `.pnnx` more or less.
        layers: the layer registry; by default the engine's own registry.
        max_run_bytes: maximum bytes of live tensors in a run, inputs and outputs included. A run
            that would need more is refused before it allocates anything, as far as shapes do not depend on data.
        backend: what runs the layers; by default `KUIPER_BACKEND`, `auto` if unset.
        threads: threads that share one run's compiled kernels, 1 to 1024.
        programs_kept: maximum compiled programs in the cache (LRU), at least 1; one per combination of shapes.
        verify: when a compiled program is compared with the reference implementation; one that differs is not used.
        max_build_seconds: maximum seconds of building, and of planning and compiling for one combination of shapes.
        precision: precision of matrix products in compiled kernels; the reference implementation computes in float32,
            int8 or int4.
        quantization: quantization of the precision `int8`; by default the file beside the model.
        tolerance: for `auto`, the loss that speed may cost, 0 to 1: the largest of |y - y32| / |y32| over outputs.

    Raises:
        BuildError: the backend cannot be had, or another of these arguments makes no sense.
        ParamError: `param_path` names no file.
    """

    def __init__(
        self,
        param_path: Path | str,
        bin_path: Path | str | None = None,
        *,
        layers: LayerRegistry = registry,
        max_run_bytes: int = MAX_RUN_BYTES,
        backend: Backend | str | None = None,
        threads: int = 1,
        programs_kept: int = PROGRAMS_KEPT,
        verify: Verify | str = Verify.LOAD,
        max_build_seconds: float | None = None,
        precision: Precision | str = Precision.F32,
        quantization: Quantization | None = None,
        tolerance: float = LOSS_TOLERATED,
    ) -> None:
        if not Path(param_path).name:
            raise ParamError(repr(str(param_path)), None, "names no file", "the path of a .param file")
        self.param_path = Path(param_path)
        self.bin_path = Path(bin_path) if bin_path is not None else bin_beside(self.param_path)
        self._registry = layers
        self._options = ExecutorOptions(
            threads=threads,
            max_run_bytes=max_run_bytes,
            programs_kept=programs_kept,
            verify=choose_verify(verify),
            max_build_seconds=checked_seconds(max_build_seconds),
            precision=choose_precision(precision) if quantization is None else Precision.INT8,
            tolerance=checked_tolerance(tolerance),
        )
        self._state = GraphState.NEED_INIT
        self._linked = LinkedGraph()
        self._warnings: tuple[str, ...] = ()
        self._plan = self._cached_plans()
        self._backend = choose_backend(backend)
        self._quantization = quantization
        self._executor: Executor | None = None
        self._digest: Callable[[], str] = str

    @property
    def state(self) -> GraphState:
        """How far the graph has come."""
        return self._state

    def init(self) -> None:
        """Read the files, link operators and operands, and order them; no-op if that is done.

        Raises:
            PnnxError: a file is not what PNNX writes.
            GraphError: operators and operands do not link up, form a cycle, nest tuples without end, or are too long.
        """
        if self._state is not GraphState.NEED_INIT:
            return
        self._linked = link_graph(pnnx.read(self.param_path, self.bin_path, entry_cache(self._backend)))
        self._plan = self._cached_plans()
        self._state = GraphState.NEED_BUILD

    def build(self) -> None:
        """Bind every operator to the layer of its type.

        Raises:
            UnsupportedOperatorError: some types have no layer; lists all such operators.
            ParameterError: a parameter or attribute is missing or of the wrong kind.
            BuildError: it is ambiguous which results of a layer an operator's outputs are, or the file declares outputs
                that their operator cannot compute, and the graph does not run on its declared shapes.
            BuildTimeoutError: it takes longer than `max_build_seconds`.
            QuantizationError: the model's quantization file is missing or malformed.
            PnnxError, GraphError: as `init()`, which is called first where it was not.
        """
        if self._state is GraphState.COMPLETE:
            return
        self.init()
        clock = BuildClock(self._options.max_build_seconds, "building")
        linked = self._linked
        bound = bind(linked.operators, linked.order, self._registry, clock)
        quantization, options, doubtful = choose_quantization(
            self._quantization, self._options, self._backend, (self.param_path, self.bin_path), linked
        )
        harmless = refuse_contradictions(bound, lambda: declared_failures(linked.inputs, self._plan))
        self._warnings = (*bound.assumed, *harmless, *doubtful)
        for warning in self._warnings:
            _logger.warning("%s: %s", self.param_path, warning)
        options = replace(options, dynamic_axes=dynamic_axes(linked.inputs))
        self._digest = partial(
            content_digest, linked.operators, quantization, options.precision, options.tolerance
        )  # without the graph, which would outlive its last user
        names = linked.input_names, linked.leaving
        self._executor = make_executor(self._backend, self._plan, *names, options, self._digest)
        self._state = GraphState.COMPLETE

    def forward(self, inputs: Inputs) -> list[Array]:
        """Run the graph; returns its outputs, nested tuples flattened in order.

        Args:
            inputs: arrays in the order of the `pnnx.Input` operators, or a dict by operator or operand name.

        Raises:
            StateError: the graph is not built.
            InputError: the inputs do not fit the graph's.
            LayerError: a layer cannot run on what reached it, or the run would take too much memory.
        """
        return self.run(inputs).outputs

    def __call__(self, *inputs: Any) -> list[Array]:
        """Run the graph: `graph(x)`, `graph([x, y])` and `graph(x, y)` are `forward` of the same inputs."""
        return self.forward(inputs[0] if len(inputs) == 1 else inputs)

    def run(
        self,
        inputs: Inputs,
        *,
        trace: TraceLevel | str = TraceLevel.OFF,
        capture: Collection[str] = (),
        stop: StopCheck | None = None,
        waits: bool = True,
    ) -> RunResult:
        """Run the graph and return a trace.

        Captured operands and statistics are those of the live compiled program, paused when a tensor is complete. Those
        of fused operators come from a run of the reference implementation on the same inputs; see
        `RunResult.captured_by`.

        Args:
            inputs: as for `forward`.
            trace: how much to record: `off`, `on` or `statistics`.
            capture: names of operands whose values to return.
            stop: called before each layer; a text stops the run.
            waits: whether a run on new shapes waits for the compiler; else the reference implementation runs until
                compilation is done.

        Raises:
            StateError, InputError, LayerError: as `forward`; InputError also for an unknown operand or trace level.
            RunStoppedError: `stop` returned a text.
        """
        executor = self._built()
        level = trace if isinstance(trace, TraceLevel) else choose_level(trace)
        if capture:
            check_capture(capture, self._linked.operands)
        arrays = check_inputs(self._linked.inputs, inputs)
        return executor.run(arrays, RunOptions(level, capture, stop, waits))

    def prepare(self, inputs: Sequence[TensorSpec]) -> Footprint | None:
        """Plan and compile for inputs of these shapes and dtypes now, so that the first run on them does not have to.

        Returns the memory of the compiled plan; None if nothing is compiled.

        Raises:
            StateError, InputError, LayerError: as `plan`.
            BuildTimeoutError: it takes longer than `max_build_seconds`.
        """
        executor = self._built()
        check_specs(self._linked.inputs, inputs)
        return executor.prepare(tuple(inputs))

    def observable(self, inputs: Sequence[TensorSpec]) -> Mapping[str, str]:
        """Return, for each operand, the operand at which a run on inputs of these shapes and dtypes can observe it.

        Returns:
            Operand name -> its own name; of one that never leaves a kernel's registers, that of the kernel's result.

        Raises:
            StateError, InputError, LayerError: as `plan`.
        """
        executor = self._built()
        check_specs(self._linked.inputs, inputs)
        return executor.observable(tuple(inputs))

    def is_compiled(self, inputs: Sequence[TensorSpec]) -> bool:
        """Return whether a run on such inputs would use a compiled program now; StateError where it is not built."""
        return self._built().is_compiled(tuple(inputs))

    @property
    def compilation(self) -> Compilation:
        """Numbers of compiled and waiting programs."""
        return self._executor.compilation if self._executor is not None else Compilation()

    @property
    def verification(self) -> Verification:
        """Results so far of comparing compiled programs with the reference implementation."""
        return self._executor.verification if self._executor is not None else Verification()

    @property
    def precision(self) -> Precision:
        """The requested precision; `precisions` has the actual ones."""
        return self._options.precision

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """In what each operator's products are computed, by its name, in execution order.

        It is that of the program compiled last; for all that is not compiled, or is no product, F32, if not INT8 or
        INT4.
        """
        known = {} if self._executor is None else self._executor.precisions
        layers = {operator.name: operator.layer for operator in self.execution_order}
        return {
            name: known.get(name, Precision.F32)
            if layer is None or layer.precision is Precision.F32
            else layer.precision
            for name, layer in layers.items()
        }

    def plan(self, inputs: Sequence[TensorSpec]) -> Plan:
        """Return the plan of a run on inputs of these shapes and dtypes, in the order of `inputs`.

        Raises:
            StateError: the graph is not built.
            InputError: wrong count, rank or dtype.
            LayerError: a layer could not run on the shapes that would reach it, or the run would take too much memory.
        """
        self._need(GraphState.COMPLETE, "build()")
        check_specs(self._linked.inputs, inputs)
        return self._plan(tuple(inputs))

    def declared_plan(self, dynamic_dimension: int = 1) -> Plan | None:
        """Return the plan for the declared shapes, `?` read as `dynamic_dimension`; None where none runs."""
        self._need(GraphState.COMPLETE, "build()")
        specs = declared_inputs(self._linked.inputs, dynamic_dimension)
        try:
            return None if specs is None else self._plan(specs)
        except KuiperError:
            return None

    @property
    def digest(self) -> str:
        """SHA-256 of all that determines the results, weights included, in hexadecimal; computed at each call."""
        self._need(GraphState.COMPLETE, "build()")
        return self._digest()

    @property
    def operators(self) -> Sequence[RuntimeOperator]:
        """All operators, in file order."""
        self._need(GraphState.NEED_BUILD, "init() or build()")
        return self._linked.operators

    @property
    def operands(self) -> Mapping[str, RuntimeOperand]:
        """All operands by name."""
        self._need(GraphState.NEED_BUILD, "init() or build()")
        return self._linked.operands

    @property
    def execution_order(self) -> Sequence[RuntimeOperator]:
        """All operators in the order in which they run."""
        self._need(GraphState.NEED_BUILD, "init() or build()")
        return self._linked.order

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The graph's inputs, in the order in which `forward` takes them."""
        self._need(GraphState.NEED_BUILD, "init() or build()")
        return self._linked.inputs

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the build: assumptions about what the files do not declare, and doubts about int8."""
        self._need(GraphState.COMPLETE, "build()")
        return self._warnings

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The graph's outputs, in the order in which `forward` gives them."""
        self._need(GraphState.NEED_BUILD, "init() or build()")
        return self._linked.outputs

    def __repr__(self) -> str:
        """Return one line: the file, the state, how many operators."""
        count = "" if self._state is GraphState.NEED_INIT else f", {len(self._linked.operators)} operators"
        return f"<RuntimeGraph {self.param_path.name!r} {self._state.value}{count}>"

    def __str__(self) -> str:
        """Return a table of the operators in file order, once the files are read."""
        return "\n".join([repr(self), *operator_table(self._linked.operators)])

    def _repr_html_(self) -> str:
        """Return the table of `str` for notebooks."""
        return operator_html(repr(self), self._linked.operators)

    def _cached_plans(self) -> Planner:
        options, linked = self._options, self._linked
        limits = options.max_run_bytes, options.programs_kept, options.max_build_seconds
        return cached_planner(linked.order, linked.operands, linked.input_names, *limits)

    def _built(self) -> Executor:
        if self._executor is None:
            raise StateError(f"graph is in state {self._state.value}; call build() first")
        return self._executor

    def _need(self, state: GraphState, call: str) -> None:
        if not self._state.has_reached(state):
            raise StateError(f"graph is in state {self._state.value}; call {call} first")
