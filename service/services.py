"""The parts of a running server, as routes and middleware reach them."""

from dataclasses import dataclass

from fastapi import FastAPI, Request

from service.config.settings import Settings
from service.lifecycle import Lifecycle, Phase
from service.repository.repository import ModelRepository
from service.scheduling.dispatcher import Dispatcher
from service.scheduling.refusals import not_ready, shutting_down
from service.telemetry.telemetry import Telemetry


@dataclass(slots=True)
class Services:
    """The parts of a running server.

    Attributes:
        settings: its settings.
        lifecycle: the phase that it is in.
        dispatcher: its queues and workers.
        telemetry: its statistics, metrics, traces and spans.
        loaded: its models; None until they are loaded.
    """

    settings: Settings
    lifecycle: Lifecycle
    dispatcher: Dispatcher
    telemetry: Telemetry
    loaded: ModelRepository | None = None

    @property
    def repository(self) -> ModelRepository:
        """The models.

        Raises:
            ServiceError: 503 `not_ready` before they are loaded.
        """
        if self.loaded is None:
            raise not_ready()
        return self.loaded

    def check_ready(self) -> None:
        """Check that requests are accepted.

        Raises:
            ServiceError: 503 `not_ready` before the models are loaded, 503 `shutting_down` once the server shuts down.
        """
        if self.lifecycle.phase is Phase.DRAINING:
            raise shutting_down()
        if self.lifecycle.phase is Phase.STARTING:
            raise not_ready()


def services_of(target: Request | FastAPI) -> Services:
    """Return the services of an application, or of the one that got a request."""
    app = target.app if isinstance(target, Request) else target
    services = app.state.services
    if not isinstance(services, Services):
        raise TypeError(f"app.state.services is a {type(services).__name__}")
    return services
