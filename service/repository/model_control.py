"""Whether clients may load and unload models."""

from service.config.settings import Settings
from service.errors import ServiceError


def check_control(settings: Settings) -> None:
    """Check that clients may load and unload models.

    Raises:
        ServiceError: 403 `model_control_off`.
    """
    if settings.model_control != "explicit":
        message = "models are not loaded and unloaded on request; --model-control explicit allows it"
        raise ServiceError(403, "model_control_off", message)
