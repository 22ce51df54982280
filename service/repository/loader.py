"""Loads all versions of a model from its folder."""

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from engine import KuiperError
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError, load_model_config
from service.config.override import ConfigOverride
from service.config.settings import Settings
from service.config.version_policy import select_versions
from service.log_context import FIELDS
from service.repository.entry import WHOLE_MODEL, ModelEntry
from service.repository.files import ModelFilesError, check_name, model_folders, version_folders
from service.repository.loaded_model import LoadedModel, load_model

_FAULTS_OF_A_MODEL = (KuiperError, ModelConfigError, ModelFilesError, OSError)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelLoader:
    """Reads the folder of models, anew at each call.

    A version's folder may have a `model.toml`, which then stands in for the model's own; `versions` belongs in the
    model's own.

    Attributes:
        settings: the server's: where the folder is, how models are loaded.
    """

    settings: Settings

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models by name, in order of name.

        Raises:
            ModelFilesError, OSError: there is no such folder, or it holds no model.
        """
        return model_folders(self.settings.models)

    def load(self, name: str, folder: Path, override: ConfigOverride | None = None) -> ModelEntry:
        """Load the versions of a model that are to be served; what is wrong with it is in the entry."""
        versions: dict[str, LoadedModel] = {}
        unavailable: dict[str, str] = {}
        try:
            config, chosen = _choose(name, folder, override)
        except Exception as error:  # one model must not decide over the others
            return ModelEntry(name, unavailable={WHOLE_MODEL: _explain(name, folder, error)})
        for version, path in chosen.items():
            try:
                versions[version] = self._load_version(name, version, path, config, override)
            except Exception as error:  # nor one version over its siblings
                unavailable[version] = _explain(name, folder, error)
        return ModelEntry(name, versions, unavailable)

    def _load_version(
        self, name: str, version: str, folder: Path, config: ModelConfig, override: ConfigOverride | None
    ) -> LoadedModel:
        started = time.monotonic()
        settings = self.settings
        if folder.name == version and (folder / FILE_NAME).exists():
            config = _own_config(folder)
        own = config if override is None else override.apply_to(config)
        model = load_model(
            name,
            folder,
            settings.limits,
            settings.warm_up,
            settings.max_run_bytes,
            version=version,
            config=own,
            max_batch_size=settings.max_batch_size,
            threads=own.scheduling.threads or settings.thread_count,
            backend=settings.backend,
            verify=settings.verify,
        )
        fields = {
            "model": name,
            "version": version,
            "parameters": model.parameter_count,
            "seconds": round(time.monotonic() - started, 3),
        }
        _logger.info("model loaded", extra={FIELDS: fields})
        _log_findings(model)
        return model


def _log_findings(model: LoadedModel) -> None:
    """Log what a model was compiled for, and what of it is not used."""
    who = {"model": model.name, "version": model.version}
    for item in model.warmed_up:
        _logger.info("model warmed up", extra={FIELDS: {**who, **item.fields}})
    for refusal in model.graph.verification.refused:
        _logger.warning("program refused", extra={FIELDS: {**who, "reason": str(refusal)}})
    if model.batching.refusal is not None:
        _logger.warning("batching refused", extra={FIELDS: {**who, "reason": model.batching.refusal}})


def _choose(name: str, folder: Path, override: ConfigOverride | None) -> tuple[ModelConfig, dict[str, Path]]:
    """Return a model's own configuration, and the folders of the versions to serve."""
    check_name(name)
    available = version_folders(folder)
    config = load_model_config(folder)
    policy = config.versions if override is None or override.versions is None else override.versions
    try:
        chosen = select_versions(policy, list(available))
    except ValueError as error:
        raise ModelConfigError(folder / FILE_NAME, "versions", str(error)) from error
    return config, {version: available[version] for version in chosen}


def _own_config(folder: Path) -> ModelConfig:
    config = load_model_config(folder)
    if "versions" in config.model_fields_set:
        path = folder / FILE_NAME
        raise ModelConfigError(path, "versions", "given for one version", f"it in the {FILE_NAME} above")
    return config


def _explain(name: str, folder: Path, error: Exception) -> str:
    if not isinstance(error, _FAULTS_OF_A_MODEL):
        _logger.error("model %s cannot be loaded", name, exc_info=error)
        return f"{type(error).__name__}: {error}"
    # clients are shown the reason, and the server's paths are none of their business
    return str(error).replace(f"{folder}{os.sep}", "")
