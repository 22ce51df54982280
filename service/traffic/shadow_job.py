"""One shadow run: the same inputs on another version, and how its outputs differ from those that were answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from engine import Array, KuiperError, RunStoppedError, StopSignal, TraceLevel, short_switch_interval
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.scheduling.row_runs import run_rows
from service.scheduling.rows import count_rows
from service.traffic.output_difference import OutputDifference, compare_outputs, count_other_labels
from service.traffic.shadow_statistics import Divergence, ShadowOutcome, ShadowRun
from service.traffic.shadowed_call import ShadowedCall

FindDivergence = Callable[
    [LoadedModel, LoadedModel, Mapping[str, Array], float, Callable[[], str | None]], Divergence | None
]
"""(version, other version, inputs, tolerance, stop) -> where the two diverge first."""


@dataclass(frozen=True, slots=True)
class ShadowJob:
    """A shadow run that is to be made.

    Attributes:
        shadowed: what was answered.
        shadow: the version that is run.
        tolerance: the largest relative difference of outputs that agree.
        stop: ends the run early.
        find: finds the operator that diverges first; None where that is not to be looked for.
    """

    shadowed: ShadowedCall[Any]
    shadow: LoadedModel
    tolerance: float
    stop: StopSignal
    find: FindDivergence | None

    def run(self) -> ShadowRun | None:
        """Make the run; returns what came of it, None where it was stopped."""
        with short_switch_interval():
            try:
                return self._run()
            except RunStoppedError:
                return None

    def _run(self) -> ShadowRun:
        shadowed, inputs = self.shadowed, self._inputs()
        began = perf_counter()
        try:
            result = run_rows(self.shadow, inputs, count_rows(inputs), trace=TraceLevel.OFF, stop=self.stop)
        except RunStoppedError:
            raise
        except (KuiperError, MemoryError) as error:
            return self._ended(perf_counter() - began, ShadowOutcome.FAILED, error=str(error) or "no memory")
        seconds = perf_counter() - began
        difference = compare_outputs(shadowed.outputs, result.outputs)
        labels = self._other_labels(result.outputs) if difference.absolute else 0
        difference = OutputDifference(difference.absolute, difference.relative, labels)
        if difference.relative <= self.tolerance:
            return self._ended(seconds, ShadowOutcome.AGREES, difference)
        return self._ended(seconds, ShadowOutcome.DIFFERS, difference, self._divergence())

    def _inputs(self) -> dict[str, Array]:
        """Return the inputs under the names that the other version has for them."""
        given = self.shadowed.inputs or {}
        pairs = zip(self.shadowed.model.graph.inputs, self.shadow.graph.inputs, strict=True)
        return {other.operand: given[port.operand] for port, other in pairs}

    def _other_labels(self, outputs: list[Array]) -> int:
        try:
            return count_other_labels(self.shadowed.model, self.shadowed.outputs, self.shadow, outputs)
        except ServiceError:
            return 0

    def _divergence(self) -> Divergence | None:
        shadowed, given = self.shadowed, self.shadowed.inputs or {}
        if self.find is None or self._inputs().keys() != given.keys():
            return None
        try:
            return self.find(shadowed.model, self.shadow, given, self.tolerance, self.stop)
        except (KuiperError, ServiceError, MemoryError):  # stopped, or too large to be looked at
            return None

    def _ended(
        self,
        seconds: float,
        outcome: ShadowOutcome,
        difference: OutputDifference | None = None,
        divergence: Divergence | None = None,
        error: str | None = None,
    ) -> ShadowRun:
        shadowed = self.shadowed
        return ShadowRun(
            request_id=shadowed.request_id,
            version=shadowed.model.version,
            shadow=self.shadow.version,
            seconds=shadowed.seconds,
            shadow_seconds=seconds,
            outcome=outcome,
            difference=difference,
            divergence=divergence,
            error=error,
        )
