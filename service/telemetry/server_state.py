"""The server's state at one moment, as the metrics show it."""

from collections.abc import Iterable

from service.config.settings import Settings
from service.repository.loaded_model import LoadedModel
from service.scheduling.dispatcher import Dispatcher
from service.scheduling.policy import policy_of
from service.telemetry.metrics import ModelState, ServerState


def read_server_state(
    models: Iterable[LoadedModel], dispatcher: Dispatcher, settings: Settings
) -> ServerState:
    """Return the state of the loaded models and the workers; any thread may call it."""
    states = [
        ModelState(
            name=model.name,
            version=model.version,
            task=model.config.task,
            pending=dispatcher.waiting(model),
            queue_size=policy_of(model.config, settings).queue_size,
            programs_refused=model.graph.verification.refused_count,
        )
        for model in models
    ]
    return ServerState(states, settings.worker_count, dispatcher.busy_workers())
