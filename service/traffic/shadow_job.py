"""One shadow run: the same inputs on another version, and how its outputs differ from the response's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Generic, TypeVar

from engine import Array, KuiperError, RunStoppedError, StopSignal, TraceLevel
from service.codec import Decoded
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.rows import count_rows, run_rows
from service.scheduling.job import Job, RunOutcome
from service.traffic.output_difference import OutputDifference, compare_outputs, count_other_labels
from service.traffic.shadow_statistics import Divergence, ShadowOutcome, ShadowRun

FindDivergence = Callable[
    [LoadedModel, LoadedModel, Mapping[str, Array], float, Callable[[], str | None]], Divergence | None
]
"""(version, other version, inputs, tolerance, stop) -> where the two diverge first."""

Payload = TypeVar("Payload")


class ShadowJob(Generic[Payload]):
    """A call whose inputs and outputs are held, by reference, from its decoding until its shadow run.

    Args:
        call: the call.
        tolerance: the largest relative difference of outputs that agree.

    Attributes:
        inputs: operand name -> array; None where its run cannot be compared, or before it is decoded.
    """

    __slots__ = ("_call", "_outputs", "_seconds", "_tolerance", "inputs")

    def __init__(self, call: Job[Payload], tolerance: float) -> None:
        self._call = call
        self._tolerance = tolerance
        self.inputs: Mapping[str, Array] | None = None
        self._outputs: Sequence[Array] = ()
        self._seconds = 0.0

    def call(self) -> Job[Payload]:
        """Return the call to submit in place of the one that was given; its response is the same."""
        return replace(self._call, decode=self._decode, encode=self._encode)

    @property
    def byte_count(self) -> int:
        """Bytes of all that is held."""
        inputs = () if self.inputs is None else self.inputs.values()
        return sum(array.nbytes for array in (*inputs, *self._outputs))

    def run(self, shadow: LoadedModel, stop: StopSignal, find: FindDivergence | None) -> ShadowRun | None:
        """Run the shadow version; returns the result, None where it was stopped.

        Args:
            shadow: the version that is run.
            stop: ends the run early.
            find: finds the operator that diverges first; None: it is not searched for.
        """
        try:
            return self._run(shadow, stop, find)
        except RunStoppedError:
            return None

    def _run(self, shadow: LoadedModel, stop: StopSignal, find: FindDivergence | None) -> ShadowRun:
        model, given = self._call.model, self.inputs or {}
        ports = zip(model.graph.inputs, shadow.graph.inputs, strict=True)
        inputs = {other.operand: given[port.operand] for port, other in ports}
        began = perf_counter()
        ended = partial(ShadowRun, self._call.request_id, model.version, shadow.version, self._seconds)
        try:
            result = run_rows(shadow, inputs, count_rows(inputs), trace=TraceLevel.OFF, stop=stop)
        except RunStoppedError:
            raise
        except (KuiperError, MemoryError) as error:
            return ended(perf_counter() - began, ShadowOutcome.FAILED, error=str(error) or "no memory")
        seconds = perf_counter() - began
        difference = compare_outputs(self._outputs, result.outputs)
        labels = self._other_labels(shadow, result.outputs) if difference.absolute else 0
        difference = OutputDifference(difference.absolute, difference.relative, labels)
        if difference.relative <= self._tolerance:
            return ended(seconds, ShadowOutcome.AGREES, difference)
        divergence = None
        if find is not None and inputs.keys() == given.keys():
            try:
                divergence = find(model, shadow, given, self._tolerance, stop)
            except (KuiperError, ServiceError, MemoryError):  # stopped, or too large to be looked at
                divergence = None
        return ended(seconds, ShadowOutcome.DIFFERS, difference, divergence)

    def _other_labels(self, shadow: LoadedModel, outputs: list[Array]) -> int:
        try:
            return count_other_labels(self._call.model, self._outputs, shadow, outputs)
        except ServiceError:
            return 0

    def _decode(self) -> Decoded:
        decoded = self._call.decode()
        options = decoded.options
        if not options.capture and (options.trace or TraceLevel.OFF) < TraceLevel.STATISTICS:
            self.inputs = decoded.inputs
        return decoded

    def _encode(self, outcome: RunOutcome) -> Payload:
        response = self._call.encode(outcome)
        self._outputs = outcome.result.outputs
        self._seconds = (outcome.timestamps.forward_end - outcome.timestamps.forward_start) / 1e9
        return response
