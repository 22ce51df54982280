"""What there is to see of a server at one moment."""

from service.scheduling.policy import policy_of
from service.services import Services
from service.telemetry.metrics import ModelState, ServerState


def look_at(services: Services) -> ServerState:
    """Return the server's state; any thread may call it."""
    dispatcher, settings = services.dispatcher, services.settings
    models = [
        ModelState(
            name=model.name,
            version=model.version,
            task=model.config.task,
            pending=dispatcher.waiting(model),
            queue_size=policy_of(model.config, settings).queue_size,
            programs_refused=model.graph.verification.refused_count,
        )
        for model in services.loaded or ()
    ]
    return ServerState(models, settings.worker_count, dispatcher.busy_workers())
