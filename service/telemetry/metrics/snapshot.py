"""The server at one moment, as far as metrics show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine import Compilation
from service.config.settings import Settings
from service.graph.view import count_precisions
from service.images.decoder import DECODER
from service.repository.loaded_model import LoadedModel
from service.scheduling.policy import scheduling_policy
from service.scheduling.scheduler import Scheduler
from service.stores.poll_status import PollStatus
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
    """

    name: str
    version: str
    task: str
    waiting: int
    queue_size: int
    refused_programs: int
    precisions: dict[str, int]
    compilation: Compilation

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
        heavy_workers: threads for heavy requests, beside these.
        busy_heavy_workers: how many of them are at work on one now.
        has_decoder: whether there is a process that decodes large images now.
        decoders_ended: how many such processes were ended, by the code of the error that told the client.
        traffic: of each model that has one, by name.
        polls: what came of looking for changes of models; None where nobody looks.
    """

    models: Sequence[ModelSnapshot]
    workers: int
    busy_workers: int
    heavy_workers: int
    busy_heavy_workers: int
    has_decoder: bool
    decoders_ended: Mapping[str, int]
    traffic: Mapping[str, ModelTraffic] = field(default_factory=dict)
    polls: PollStatus | None = None


def take_snapshot(
    models: Iterable[LoadedModel],
    scheduler: Scheduler,
    settings: Settings,
    traffic: Mapping[str, ModelTraffic] | None = None,
    polls: PollStatus | None = None,
) -> Snapshot:
    """Return the state of the server; may be called on any thread.

    Args:
        models: the loaded models.
        scheduler: the queues and workers.
        settings: the server's settings.
        traffic: that of each model that has one, by name.
        polls: what came of looking for changes of models.
    """
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
        )
        for model in models
    ]
    return Snapshot(
        snapshots,
        settings.worker_count,
        scheduler.busy_workers(),
        settings.heavy_worker_count,
        scheduler.busy_heavy_workers(),
        DECODER.is_running,
        DECODER.ended,
        traffic or {},
        polls,
    )
