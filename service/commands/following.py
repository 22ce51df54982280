"""A run that logs each operator while it goes on."""

import time

from rich.console import Console

from engine import RuntimeGraph, Step, TensorSpec, pnnx_name
from service.commands.opening import RunInputs


class _Follower:
    """Shows of each operator that it begins, and of the one before how long it took.

    It is the stop check of a run on the numpy backend, called before each step of the plan.
    """

    def __init__(self, graph: RuntimeGraph, inputs: RunInputs, out: Console) -> None:
        plan = graph.plan(inputs.specs)
        self._steps = plan.steps
        self._specs = plan.specs
        self._out = out
        self._place = 0
        self._began = 0

    def __call__(self) -> None:
        now = time.perf_counter_ns()
        self.finish(now)
        if self._place < len(self._steps):
            self._begin(self._steps[self._place])
        self._place += 1
        self._began = time.perf_counter_ns()

    def finish(self, now: int) -> None:
        """Show how long the last operator took."""
        if self._place:
            self._out.print(f"  {(now - self._began) / 1e6:.3f} ms")

    def _begin(self, step: Step) -> None:
        operator = step.operator
        taken = ", ".join(self._spec(operand.name) for operand in operator.inputs)
        given = ", ".join(self._spec(operand.name) for operand in operator.outputs)
        width = len(str(len(self._steps)))
        text = f"[{self._place + 1:{width}}/{len(self._steps)}] {operator.type} {operator.name}  {taken} -> {given}"
        # the name is shown before the operator runs: where it fails or never ends, it is the last one seen
        self._out.print(text, end="", soft_wrap=True)

    def _spec(self, name: str) -> str:
        spec = self._specs[name]
        if not isinstance(spec, TensorSpec):
            return type(spec).__name__
        return f"({','.join(map(str, spec.shape))}){pnnx_name(spec.dtype)}"


def follow_run(graph: RuntimeGraph, inputs: RunInputs, out: Console) -> None:
    """Run a graph on the numpy backend, and log each operator as it runs.

    Raises:
        LayerError: an operator fails; the log ends with it.
    """
    follower = _Follower(graph, inputs, out)
    began = time.perf_counter_ns()
    try:
        graph.run(inputs.arrays, stop=follower)
    except BaseException:
        out.print()
        raise
    follower.finish(time.perf_counter_ns())
    out.print(f"total {(time.perf_counter_ns() - began) / 1e6:.3f} ms on {inputs.source}")
