"""The statistics of one version of a model, as they are read from the metrics."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

Identity = tuple[str, str]
"""Name and version of a model."""
Samples = Mapping[str, Mapping[tuple[str, ...], float]]
"""Name of a sample -> values of its labels but model and version, in the order of the labels' names -> its value."""

_TOTAL = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """How often something was done, and how many nanoseconds it took altogether."""

    count: int = 0
    ns: int = 0


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """Runs of one batch size. Each run is counted once, with the times of the call that leads it."""

    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration


@dataclass(frozen=True, slots=True)
class ModelStatistics:
    """What was counted of one version of a model. The time of a request is from the end of its body to its answer's.

    Attributes:
        name: name of the model.
        version: its version.
        samples: those of its series.
    """

    name: str
    version: str
    samples: Samples

    @property
    def last_inference(self) -> int:
        """When its last run ended, in milliseconds since the epoch; 0 where it never ran."""
        return int(self._value("statistics_last_run") * 1e3)

    @property
    def inference_count(self) -> int:
        """Items (rows) of answered requests."""
        return int(self._value("statistics_items_total"))

    @property
    def execution_count(self) -> int:
        """Runs; a batch is one."""
        return int(self._value("kuiper_batch_size_count"))

    @property
    def success(self) -> Duration:
        """Times of answered requests."""
        return self._duration("kuiper_request_seconds_sum")

    @property
    def fail(self) -> Duration:
        """Times of other requests."""
        return _duration(
            self._value("statistics_failed_seconds_count"), self._value("statistics_failed_seconds_sum")
        )

    @property
    def queue(self) -> Duration:
        """Times that answered requests waited."""
        return self._duration("kuiper_queue_seconds_sum")

    @property
    def compute_input(self) -> Duration:
        """Times that decoding them took."""
        return self._duration("statistics_input_seconds_total")

    @property
    def compute_infer(self) -> Duration:
        """Times of their runs."""
        return self._duration("kuiper_compute_seconds_sum")

    @property
    def compute_output(self) -> Duration:
        """Times that encoding their answers took."""
        return self._duration("statistics_output_seconds_total")

    @property
    def failures(self) -> dict[str, int]:
        """Reason -> number of requests that were not answered."""
        counts = self.samples.get("statistics_failures_total", {})
        return {reason: int(count) for (reason,), count in counts.items()}

    @property
    def observed(self) -> int:
        """Answered requests whose run was observed."""
        return int(self._value("kuiper_observed_request_seconds_count"))

    @property
    def request_counts(self) -> list[int]:
        """Answered requests by time: up to each of `REQUEST_SECONDS` and above the one before, and above the last."""
        buckets = self.samples.get("kuiper_request_seconds_bucket", {})
        counts = [0, *(int(count) for _, count in sorted(buckets.items(), key=lambda one: float(one[0][0])))]
        return [count - before for before, count in itertools.pairwise(counts)]

    @property
    def batches(self) -> dict[int, BatchStatistics]:
        """Batch size -> statistics of its runs, smallest first."""
        counts = self.samples.get("statistics_run_seconds_count", {})
        sums = self.samples.get("statistics_run_seconds_sum", {})
        return {
            size: BatchStatistics(
                *(
                    _duration(counts.get((str(size), stage), 0), sums.get((str(size), stage), 0))
                    for stage in ("input", "infer", "output")
                )
            )
            for size in sorted({int(size) for size, _ in counts})
        }

    def _duration(self, name: str) -> Duration:
        return _duration(self._value("kuiper_request_seconds_count"), self._value(name))

    def _value(self, name: str) -> float:
        return self.samples.get(name, {}).get(_TOTAL, 0.0)


def _duration(count: float, seconds: float) -> Duration:
    return Duration(int(count), round(seconds * 1e9))
