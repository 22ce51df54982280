"""Executor of the reference implementation: layer by layer, each by its numpy forward."""

from collections.abc import Mapping, Sequence

from engine.dtypes import Array
from engine.precision import Precision
from engine.run.executor import Compilation, Footprint, RunOptions
from engine.run.plan import InputSpecs, Planner
from engine.run.run import Run, RunResult
from engine.run.verification import Verification
from engine.spec import tensor_spec


class NumpyExecutor:
    """Runs a graph by the reference implementation; see `engine.run.executor.Executor`.

    Args:
        plan: makes plans.
        outputs: names of the operands that leave the graph.
        max_run_bytes: maximum bytes of live tensors in a run.
    """

    def __init__(self, plan: Planner, outputs: Sequence[str], max_run_bytes: int) -> None:
        self._plan = plan
        self._outputs = tuple(outputs)
        self._max_run_bytes = max_run_bytes

    def run(self, inputs: Mapping[str, Array], options: RunOptions) -> RunResult:
        """Run each layer's numpy forward, in execution order."""
        plan = self._plan(tuple(map(tensor_spec, inputs.values())))
        level, capture, stop, _ = options
        return Run(plan, level, capture, stop, self._max_run_bytes).execute(inputs, self._outputs)

    def prepare(self, inputs: InputSpecs) -> Footprint | None:
        """Make the plan, so that the first run does not have to; returns None, as nothing is compiled."""
        self._plan(inputs)
        return None

    def observable(self, inputs: InputSpecs) -> Mapping[str, str]:
        """Every operand can be observed directly."""
        slots = self._plan(inputs).slots
        return dict(zip(slots, slots, strict=True))

    def is_compiled(self, inputs: InputSpecs) -> bool:  # noqa: ARG002  # as the protocol has it
        """Nothing is ever compiled."""
        return False

    @property
    def compilation(self) -> Compilation:
        """Nothing is compiled."""
        return Compilation()

    @property
    def verification(self) -> Verification:
        """Nothing is compiled, and so nothing verified."""
        return Verification()

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """Empty: the reference implementation computes in float32, whatever the requested precision."""
        return {}
