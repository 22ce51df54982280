"""The server's counters as `GET /stats` shows them, for charts that ask every second or so."""

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field

from service.histogram import REQUEST_SECONDS
from service.repository.loaded_model import LoadedModel
from service.scheduling.scheduler import Scheduler
from service.telemetry.model_statistics import ModelStatistics
from service.telemetry.statistics import InferenceStatistics


class LatencyView(BaseModel):
    """How many successful requests took how long."""

    bounds_ms: list[float] = Field(description="upper bounds of the classes, in milliseconds, ascending")
    counts: list[int] = Field(
        description="requests in each class, one more than there are bounds: the last is above them all"
    )
    sum_ms: float = Field(description="milliseconds of all these requests together")


class ModelStats(BaseModel):
    """Counters of a model, of all its loaded versions together, since the server was started."""

    requests: int = Field(description="requests that ended, failed ones included")
    errors: dict[str, int] = Field(description="failed requests, by Triton's reasons")
    observed: int = Field(description="successful requests that captured operands or asked for statistics")
    queue_length: int = Field(description="requests that wait now")
    in_flight: int = Field(description="requests that workers run now")
    items: int = Field(description="rows of successful requests")
    runs: int = Field(description="runs; a batch is one")
    batch_sizes: dict[str, int] = Field(description="number of rows of a run -> how many runs had as many")
    latency: LatencyView = Field(
        description="from the end of a request's body to its response; of those that were observed nothing is counted"
    )


class StatsView(BaseModel):
    """The server's counters. They only grow while models stay loaded: differences of two responses are rates."""

    uptime_s: float
    memory_bytes: int | None = Field(description="resident memory of the process; null where it is not known")
    workers: int
    busy: int = Field(description="workers that run a model now")
    models: dict[str, ModelStats]


def describe_models(
    models: Iterable[LoadedModel], scheduler: Scheduler, statistics: InferenceStatistics
) -> dict[str, ModelStats]:
    """Return the counters of the loaded models by name.

    Args:
        models: every version of every loaded model.
        scheduler: the queues and workers.
        statistics: what was counted of the models.
    """
    loaded = list(models)
    counted = statistics.read((model.name, model.version) for model in loaded)
    versions: dict[str, list[tuple[LoadedModel, ModelStatistics]]] = {}
    for model, one in zip(loaded, counted, strict=True):
        versions.setdefault(model.name, []).append((model, one))
    return {name: _describe(of_name, scheduler) for name, of_name in versions.items()}


def _describe(versions: Sequence[tuple[LoadedModel, ModelStatistics]], scheduler: Scheduler) -> ModelStats:
    counted = [one for _, one in versions]
    observed = sum(one.observed for one in counted)
    errors, batch_sizes = Counter[str](), Counter[int]()
    for one in counted:
        errors.update(one.failures)
        batch_sizes.update({size: batch.compute_infer.count for size, batch in one.batches.items()})
    return ModelStats(
        requests=sum(one.success.count for one in counted) + observed + errors.total(),
        errors={reason: count for reason, count in errors.items() if count},
        observed=observed,
        queue_length=sum(scheduler.waiting(model) for model, _ in versions),
        in_flight=sum(scheduler.running(model) for model, _ in versions),
        items=sum(one.inference_count for one in counted),
        runs=sum(one.execution_count for one in counted),
        batch_sizes={str(size): count for size, count in sorted(batch_sizes.items())},
        latency=LatencyView(
            bounds_ms=[bound * 1e3 for bound in REQUEST_SECONDS],
            counts=[sum(counts) for counts in zip(*(one.request_counts for one in counted), strict=True)],
            sum_ms=sum(one.success.ns for one in counted) / 1e6,
        ),
    )
