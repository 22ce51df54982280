"""What metrics look at when they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.config.settings import Settings
from service.repository.loaded_model import LoadedModel
from service.scheduling.scheduler import Scheduler
from service.stores.poll_status import PollStatus
from service.traffic.model_traffic import ModelTraffic


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server when its metrics are shown.

    Attributes:
        models: every version of every loaded model.
        scheduler: the queues and workers.
        settings: the server's settings.
        traffic: of each model that has one, by name.
        polls: what came of looking for changes of models; None where nobody looks.
    """

    models: Sequence[LoadedModel]
    scheduler: Scheduler
    settings: Settings
    traffic: Mapping[str, ModelTraffic] = field(default_factory=dict)
    polls: PollStatus | None = None

    @property
    def identities(self) -> set[tuple[str, str]]:
        """Name and version of each model."""
        return {(model.name, model.version) for model in self.models}
