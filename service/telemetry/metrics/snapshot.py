"""The server at one moment, as far as metrics show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine import Compilation
from service.config.settings import Settings
from service.decoding import DECODERS
from service.graph.view import count_precisions
from service.histogram import Histogram
from service.repository.loaded_model import LoadedModel
from service.scheduling.policy import scheduling_policy
from service.scheduling.scheduler import Scheduler
from service.stores.poll_status import PollStatus
from service.telemetry.http_durations import HttpDurations
from service.telemetry.rpc_durations import RpcEnding
from service.telemetry.statistics import InferenceStatistics, ModelStatistics
from service.traffic.model_traffic import ModelTraffic


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """A loaded model at one moment.

    Attributes:
        name: its name.
        version: its version.
        task: its task, as its configuration names it.
        waiting: requests that wait for it.
        queue_size: requests that may wait for it while all its workers are busy.
        refused_programs: compiled programs that are not used, because they differ from numpy or the compiler failed.
        precisions: how many operators are computed in each precision.
        compilation: how far the compiler has come with the shapes of its requests.
        statistics: what was counted of its requests and runs; it goes on counting.
    """

    name: str
    version: str
    task: str
    waiting: int
    queue_size: int
    refused_programs: int
    precisions: dict[str, int]
    compilation: Compilation
    statistics: ModelStatistics

    @property
    def labels(self) -> tuple[str, str]:
        """Values of the labels `model` and `version`."""
        return self.name, self.version


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server at one moment.

    Attributes:
        models: every version of every loaded model.
        workers: threads that run models.
        busy_workers: how many of them run one now.
        decoders: how many processes decode large bodies now.
        decoders_ended: how many such processes were ended, by the code of the error that told the client.
        http_durations: durations of the HTTP requests so far.
        traffic: of each model that has one, by name.
        polls: what came of looking for changes of models; None where nobody looks.
        rpc_calls: durations of the calls by gRPC so far, by method and status code.
    """

    models: Sequence[ModelSnapshot]
    workers: int
    busy_workers: int
    decoders: int
    decoders_ended: Mapping[str, int]
    http_durations: HttpDurations
    traffic: Mapping[str, ModelTraffic] = field(default_factory=dict)
    polls: PollStatus | None = None
    rpc_calls: Sequence[tuple[RpcEnding, Histogram]] = ()


def take_snapshot(
    models: Iterable[LoadedModel],
    scheduler: Scheduler,
    settings: Settings,
    statistics: InferenceStatistics,
    http_durations: HttpDurations,
    traffic: Mapping[str, ModelTraffic] | None = None,
    polls: PollStatus | None = None,
    rpc_calls: Sequence[tuple[RpcEnding, Histogram]] = (),
) -> Snapshot:
    """Return the state of the server; may be called on any thread.

    InferenceStatistics of models that are no longer loaded are dropped, so that their series end.

    Args:
        models: the loaded models.
        scheduler: the queues and workers.
        settings: the server's settings.
        statistics: what was counted of the models.
        http_durations: what was measured of HTTP requests.
        traffic: that of each model that has one, by name.
        polls: what came of looking for changes of models.
        rpc_calls: what was measured of calls by gRPC.
    """
    loaded = list(models)
    statistics.keep({(model.name, model.version) for model in loaded})
    snapshots = [
        ModelSnapshot(
            name=model.name,
            version=model.version,
            task=model.config.task,
            waiting=scheduler.waiting(model),
            queue_size=scheduling_policy(model.config, settings).queue_size,
            refused_programs=model.graph.verification.refused_count,
            precisions=count_precisions(model.graph),
            compilation=model.graph.compilation,
            statistics=statistics.of(model.name, model.version),
        )
        for model in loaded
    ]
    return Snapshot(
        snapshots,
        settings.worker_count,
        scheduler.busy_workers(),
        DECODERS.running,
        DECODERS.ended,
        http_durations,
        traffic or {},
        polls,
        rpc_calls,
    )
