"""Statistics of models in the form of the protocol's statistics extension."""

from service.telemetry.model_statistics import BatchStatistics, Duration, ModelStatistics
from service.v2.schemas import BatchStatisticsView, DurationView, InferStatistics, ModelStatisticsView

_DURATIONS = tuple(name for name in InferStatistics.model_fields if not name.startswith("cache_"))
_BATCH_DURATIONS = ("compute_input", "compute_infer", "compute_output")

_NO_CACHE = DurationView(count=0, ns=0)


def describe_statistics(statistics: ModelStatistics) -> ModelStatisticsView:
    """Return the statistics of one model."""
    durations = {name: _duration(getattr(statistics, name)) for name in _DURATIONS}
    return ModelStatisticsView(
        name=statistics.name,
        version=statistics.version,
        last_inference=statistics.last_inference,
        inference_count=statistics.inference_count,
        execution_count=statistics.execution_count,
        inference_stats=InferStatistics(**durations, cache_hit=_NO_CACHE, cache_miss=_NO_CACHE),
        batch_stats=[_batch(size, batch) for size, batch in statistics.batches.items()],
    )


def _batch(size: int, batch: BatchStatistics) -> BatchStatisticsView:
    durations = {name: _duration(getattr(batch, name)) for name in _BATCH_DURATIONS}
    return BatchStatisticsView(batch_size=size, **durations)


def _duration(duration: Duration) -> DurationView:
    return DurationView(count=duration.count, ns=duration.ns)
