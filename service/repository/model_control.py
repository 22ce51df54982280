"""Loads that clients ask for: whether they may, and where the files come from."""

from service.config.settings import Settings
from service.errors import ServiceError
from service.repository.load_progress import Step
from service.repository.model_source import ModelSource, SourceError


def check_control(settings: Settings) -> None:
    """Check that clients may load and unload models.

    Raises:
        ServiceError: 403 `model_control_off`.
    """
    if settings.model_control != "explicit":
        message = "models are not loaded and unloaded on request; --model-control explicit allows it"
        raise ServiceError(403, "model_control_off", message)


def refresh_source(source: ModelSource, name: str, step: Step) -> None:
    """Bring the models as they are now, where they are not in a folder of this machine anyway.

    Raises:
        ServiceError: 503 `store_unavailable`.
        LoadStoppedError: `step` raised it.
    """
    try:
        source.refresh(step)
    except SourceError as error:
        message = f"models cannot be fetched: {error}"
        raise ServiceError(
            503, "store_unavailable", message, {"model": name[:80]}, {"Retry-After": "5"}
        ) from error
