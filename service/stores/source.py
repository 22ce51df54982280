"""Chooses what brings the models that the settings name."""

from service.config.settings import Settings
from service.repository.local_folder import LocalFolder
from service.repository.model_source import ModelSource


def open_source(settings: Settings) -> ModelSource:
    """Return what brings the models that the settings name."""
    return LocalFolder(settings.models, settings.model_name, is_polled=settings.model_control == "poll")
