"""What shadow runs of a version have shown."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from time import time

from prometheus_client import Histogram

from service.histogram import REQUEST_SECONDS
from service.traffic.output_difference import OutputDifference

RELATIVE_DIFFERENCES = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Bounds for relative differences; the first counts outputs that are equal."""
MOST_COUNTED = 1e6
"""What larger differences, infinite ones too, are counted as: a sum of them would tell nothing any more."""
_KEPT = 32


class ShadowOutcome(Enum):
    """What became of a request that was chosen for a shadow run."""

    AGREES = "agrees"
    """The outputs differ by no more than the tolerance."""
    DIFFERS = "differs"
    """They differ by more."""
    FAILED = "failed"
    """The version failed on inputs that the other one answered."""
    NO_IDLE_WORKER = "no_idle_worker"
    """No worker was idle soon enough, or requests came that needed it."""
    SPARED = "spared"
    """Shadow runs have met as many requests as they may."""
    TOO_LARGE = "too_large"
    """Its inputs and outputs take more memory than is kept for it."""
    NOT_COMPARABLE = "not_comparable"
    """Its run kept operands or statistics."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two versions diverge first.

    Attributes:
        operator: name of the first operator in order of execution whose results differ by more than the tolerance.
        type: its PNNX type.
        absolute: largest absolute difference of its results; None where shapes differ.
        relative: that over the largest magnitude of the shadow's results; None likewise.
        group: other operators that the same compiled kernel computes: one of them may be the first.
    """

    operator: str
    type: str
    absolute: float | None
    relative: float | None
    group: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShadowRun:
    """A shadow run that was compared, or that failed.

    Attributes:
        request_id: id of the request.
        version: the version that answered.
        shadow: the version that was run beside it.
        seconds: how long the run of the version that answered took.
        shadow_seconds: how long the other one took.
        outcome: what became of it.
        difference: how the outputs differ; None where it failed.
        divergence: where they diverge first; None where that was not looked for, or not found.
        error: why it failed; None where it did not.
        epoch_ms: when it ended, in milliseconds since the epoch.
    """

    request_id: str
    version: str
    shadow: str
    seconds: float
    shadow_seconds: float
    outcome: ShadowOutcome
    difference: OutputDifference | None = None
    divergence: Divergence | None = None
    error: str | None = None
    epoch_ms: float = field(default_factory=lambda: time() * 1e3)


def seconds_histogram() -> Histogram:
    """Return a new histogram of the times of runs."""
    return Histogram(
        "kuiper_shadow_compute_seconds",
        "seconds of the runs that were compared, on either side",
        ("model", "version"),
        buckets=REQUEST_SECONDS,
        registry=None,
    )


def differences_histogram() -> Histogram:
    """Return a new histogram of relative differences."""
    return Histogram(
        "kuiper_shadow_difference",
        "largest difference of outputs, relative to the largest value that was answered; infinite ones as 1e6",
        ("model",),
        buckets=RELATIVE_DIFFERENCES,
        registry=None,
    )


class ShadowStatistics:
    """Counts the shadow runs of a model. Written on the event loop; other threads may read meanwhile.

    Args:
        model: its name.

    Attributes:
        outcomes: how many requests came to which end.
        seconds: times of the runs that were compared, on either side.
        differences: relative differences.
        labels: items whose most probable label differed.
        divergence: where versions diverged first when that was last found; None before.
        refusals: version that answers -> why its requests have no shadow runs.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self.outcomes = dict.fromkeys(ShadowOutcome, 0)
        self.seconds = seconds_histogram()
        self.differences = differences_histogram()
        self.differences.labels(model)
        self.labels = 0
        self.divergence: Divergence | None = None
        self.refusals: dict[str, str] = {}
        self._recent: deque[ShadowRun] = deque(maxlen=_KEPT)

    def observe(self, run: ShadowRun) -> None:
        """Count a run."""
        self.outcomes[run.outcome] += 1
        self._recent.append(run)
        if run.difference is not None:
            for version, seconds in ((run.version, run.seconds), (run.shadow, run.shadow_seconds)):
                self.seconds.labels(self._model, version).observe(seconds)
            self.differences.labels(self._model).observe(min(run.difference.relative, MOST_COUNTED))
            self.labels += run.difference.labels
        if run.divergence is not None:
            self.divergence = run.divergence

    def drop(self, outcome: ShadowOutcome) -> None:
        """Count a request that had no shadow run after all."""
        self.outcomes[outcome] += 1

    def newest_first(self) -> list[ShadowRun]:
        """Return the last runs."""
        return list(self._recent)[::-1]

    def find(self, request_id: str) -> ShadowRun | None:
        """Return the newest run for a request; None where none is kept."""
        return next((run for run in self.newest_first() if run.request_id == request_id), None)
