"""What shadow runs of a version have shown."""

import logging
from collections import deque
from enum import StrEnum

from prometheus_client import Histogram

from service.histogram import REQUEST_SECONDS
from service.log_context import FIELDS
from service.repository.traffic_schemas import DivergenceView, ShadowRunView
from service.traffic.split import Split

RELATIVE_DIFFERENCES = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Bounds for relative differences; the first counts outputs that are equal."""
MAX_COUNTED = 1e6
"""What larger differences, infinite ones too, are counted as: a sum of them would mean nothing."""
_KEPT = 32
_RUN, _PASS = "run", "pass"

_logger = logging.getLogger(__name__)


class ShadowOutcome(StrEnum):
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
    """Chooses the requests of a model for shadow runs, and counts these. Other threads may read meanwhile.

    Args:
        model: its name.
        share: part of the requests that is chosen, above 0 and at most 1.

    Attributes:
        outcomes: how many requests came to which end.
        seconds: times of the runs that were compared, on either side.
        differences: relative differences.
        labels: items whose most probable label differed.
        divergence: where versions diverged first when that was last found; None before.
        refusals: version that responds -> why its requests have no shadow runs.
    """

    def __init__(self, model: str, share: float) -> None:
        self._model = model
        self._split = Split(model, {_RUN: share, _PASS: 1 - share} if share < 1 else {_RUN: share})
        self.outcomes = dict.fromkeys(ShadowOutcome, 0)
        self.seconds = seconds_histogram()
        self.differences = differences_histogram()
        self.differences.labels(model)
        self.labels = 0
        self.divergence: DivergenceView | None = None
        self.refusals: dict[str, str] = {}
        self._recent: deque[ShadowRunView] = deque(maxlen=_KEPT)

    def is_due(self) -> bool:
        """Return whether a request gets a shadow run; to be called once for each request."""
        return self._split.next() == _RUN

    def observe(self, run: ShadowRunView) -> None:
        """Count a run, and log where the versions diverge."""
        self.outcomes[ShadowOutcome(run.outcome)] += 1
        self._recent.append(run)
        if run.max_rel is not None:
            for version, milliseconds in ((run.version, run.run_ms), (run.shadow, run.shadow_ms)):
                self.seconds.labels(self._model, version).observe(milliseconds / 1e3)
            self.differences.labels(self._model).observe(min(float(run.max_rel), MAX_COUNTED))
            self.labels += run.labels
        if run.divergence is not None:
            self.divergence = run.divergence
            fields = {"model": self._model, "versions": [run.version, run.shadow]}
            fields |= {"request_id": run.request_id, "operator": run.divergence.operator}
            _logger.warning("versions diverge", extra={FIELDS: fields})

    def newest_first(self) -> list[ShadowRunView]:
        """Return the last runs."""
        return list(self._recent)[::-1]
