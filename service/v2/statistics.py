"""Statistics of models in the form of the protocol's statistics extension."""

from service.telemetry.model_statistics import Duration, ModelStatistics
from service.v2.schemas import InferStatistics, ModelStatisticsView

_DURATIONS = tuple(name for name in InferStatistics.model_fields if not name.startswith("cache_"))
_NO_CACHE = Duration(0, 0)


def describe_statistics(statistics: ModelStatistics) -> ModelStatisticsView:
    """Return the statistics of one model."""
    durations = {name: getattr(statistics, name) for name in _DURATIONS}
    return ModelStatisticsView(
        name=statistics.name,
        version=statistics.version,
        last_inference=statistics.last_inference,
        inference_count=statistics.inference_count,
        execution_count=statistics.execution_count,
        inference_stats=InferStatistics(**durations, cache_hit=_NO_CACHE, cache_miss=_NO_CACHE),
        batch_stats=list(statistics.batches.values()),
    )
