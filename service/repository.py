"""The model repository: every model of a folder, loaded once."""

import difflib
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine import KuiperError
from service.errors import ServiceError
from service.loaded_model import LoadedModel, load_model
from service.model_config import ModelConfigError
from service.model_files import ModelFilesError, check_name, model_folders
from service.settings import Settings
from service.telemetry.logging import FIELDS

_FAULTS_OF_A_MODEL = (KuiperError, ModelConfigError, ModelFilesError, OSError)

_logger = logging.getLogger(__name__)


class RepositoryError(Exception):
    """The server has nothing to serve, or not all that it should; the message says why."""


class ModelRepository:
    """Loaded models by name, and what kept the others from being loaded.

    Attributes:
        broken: name -> reason.
    """

    def __init__(self, models: Mapping[str, LoadedModel], broken: Mapping[str, str]) -> None:
        self._models = dict(models)
        self.broken = dict(broken)

    def __iter__(self) -> Iterator[LoadedModel]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    @property
    def names(self) -> list[str]:
        """Names of the loaded models."""
        return list(self._models)

    def find(self, name: str | None) -> LoadedModel:
        """Return the model that a request asks for; the only one where it names none.

        Raises:
            ServiceError: 404 `model_not_found`, 422 `model_required`, 503 `model_broken`.
        """
        if name is None:
            return self._only()
        if name in self._models:
            return self._models[name]
        if name in self.broken:
            message = f"model {name!r} is broken: {self.broken[name]}"
            raise ServiceError(503, "model_broken", message, {"model": name, "reason": self.broken[name]})
        nearest = difflib.get_close_matches(name, self._models, n=3, cutoff=0.5)
        message = f"no model is called {name[:80]!r}; there are {', '.join(self._models)}"
        details = {"model": name[:80], "models": self.names, "nearest": nearest}
        raise ServiceError(404, "model_not_found", message, details)

    def _only(self) -> LoadedModel:
        if len(self._models) == 1:
            return next(iter(self._models.values()))
        message = f"say which model, as in ?model={self.names[0]}; there are {', '.join(self._models)}"
        raise ServiceError(422, "model_required", message, {"models": self.names})


def load_repository(settings: Settings) -> ModelRepository:
    """Load every model of the folder that the settings name.

    Raises:
        RepositoryError: there is no model; or one is broken and `skip_broken` is not set.
    """
    try:
        folders = model_folders(settings.models)
    except (ModelFilesError, OSError) as error:
        raise RepositoryError(str(error)) from error
    models: dict[str, LoadedModel] = {}
    broken: dict[str, str] = {}
    for name, folder in folders.items():
        try:
            models[name] = _load(name, folder, settings)
        except Exception as error:  # one model must not decide over the others
            broken[name] = _explain(name, folder, error)
    _check(models, broken, settings.skip_broken)
    return ModelRepository(models, broken)


def _load(name: str, folder: Path, settings: Settings) -> LoadedModel:
    started = time.monotonic()
    check_name(name)
    model = load_model(name, folder, settings.limits, settings.warm_up, settings.max_run_bytes)
    seconds = round(time.monotonic() - started, 3)
    fields = {"model": name, "parameters": model.parameter_count, "seconds": seconds}
    _logger.info("model loaded", extra={FIELDS: fields})
    return model


def _explain(name: str, folder: Path, error: Exception) -> str:
    if not isinstance(error, _FAULTS_OF_A_MODEL):
        _logger.error("model %s cannot be loaded", name, exc_info=error)
        return f"{type(error).__name__}: {error}"
    # clients are shown the reason, and the server's paths are none of their business
    return str(error).replace(f"{folder}{os.sep}", "")


def _check(models: Mapping[str, LoadedModel], broken: Mapping[str, str], skip_broken: bool) -> None:
    listing = "\n".join(f"model {name} is broken: {reason}" for name, reason in broken.items())
    if broken and not skip_broken:
        raise RepositoryError(f"{listing}\n(--skip-broken serves the others)" if models else listing)
    if not models:
        raise RepositoryError(f"{listing}\nno model is left to be served")
    for name, reason in broken.items():
        _logger.warning("model skipped", extra={FIELDS: {"model": name, "reason": reason}})
