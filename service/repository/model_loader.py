"""Loads the versions of a model that are to be served, each from its folder."""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine import KuiperError
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError, load_model_config
from service.config.settings import Settings
from service.config.store_url import folder_of
from service.config.version_policy import select_versions
from service.errors import clipped
from service.log_context import FIELDS, log_fields
from service.repository.files import ModelFilesError, check_name, version_folders
from service.repository.load_progress import LoadStoppedError, Step, go_on
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import WHOLE_MODEL, ModelEntry
from service.repository.model_source import ModelSource
from service.repository.version_loader import LoadOptions, load_version
from service.tasks.local import load_local_task

if TYPE_CHECKING:
    from service.config.override import ConfigOverride

PIPELINE = "pipeline"
"""The task of models without files of their own."""

_MODEL_ERRORS = (KuiperError, ModelConfigError, ModelFilesError, OSError)

_logger = logging.getLogger(__name__)


class ModelLoader:
    """Reads the folders of models, again at each call.

    The folder of a version may hold a `model.toml`, which then replaces the model's; only the model's may set
    `versions` and `[traffic]`.

    Args:
        settings: the server's settings: how models are loaded.
        source: where the folders are; by default in the one that the settings name.

    Attributes:
        settings: the same.
        source: the same.
    """

    def __init__(self, settings: Settings, source: ModelSource | None = None) -> None:
        self.settings = settings
        if source is None:
            source = ModelSource(folder_of(settings.models), settings.model_name)
        self.source = source

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models by name, in order of name.

        Raises:
            ModelFilesError, OSError: the folder does not exist or holds no model, or more than one where the settings
                name one.
        """
        return self.source.folders()

    def load(
        self,
        name: str,
        folder: Path,
        override: "ConfigOverride | None" = None,
        step: Step = go_on,
        kept: Mapping[str, LoadedModel] | None = None,
    ) -> ModelEntry:
        """Load the versions of a model that are to be served; the entry says why any of them cannot be.

        Those of a pipeline are made later, of the models that it names.

        Args:
            name: the model.
            folder: where it is.
            override: values that replace those of its `model.toml`.
            step: called before each part that may take seconds.
            kept: versions that are loaded already, and not to be loaded again, by number.

        Raises:
            LoadStoppedError: `step` raised it.
        """
        versions: dict[str, LoadedModel] = {}
        unavailable: dict[str, str] = {}
        pipelines: dict[str, tuple[Path, ModelConfig]] = {}
        try:
            load_local_task(folder, self.settings.allow_code)
            config, chosen = _choose(name, folder, override)
        except Exception as error:  # a broken model must not affect the others
            return ModelEntry(name, unavailable={WHOLE_MODEL: _explain(name, folder, error)})
        for version, path in chosen.items():
            if kept is not None and version in kept:
                versions[version] = kept[version]
                continue
            try:
                own = _config_of(version, path, config, override)
                if own.task == PIPELINE and not any(path.glob("*.param")):
                    pipelines[version] = path, own
                    continue
                with log_fields(model=name, version=version):
                    versions[version] = self._load_version(name, version, path, own, step)
            except LoadStoppedError:
                raise
            except Exception as error:  # nor a broken version the others
                unavailable[version] = _explain(name, folder, error)
        return ModelEntry(name, versions, unavailable, traffic=config.traffic, pipelines=pipelines)

    def _load_version(
        self, name: str, version: str, folder: Path, config: ModelConfig, step: Step
    ) -> LoadedModel:
        started = time.monotonic()
        options = LoadOptions.from_settings(self.settings)
        model = load_version(name, folder, options, version=version, config=config, step=step)
        seconds = round(time.monotonic() - started, 3)
        _logger.info(
            "model loaded", extra={FIELDS: {"parameters": model.parameter_count, "seconds": seconds}}
        )
        for result in model.warmed_up:
            _logger.info("model warmed up", extra={FIELDS: result.fields})
        if model.batching.refusal is not None:
            _logger.warning("batching refused", extra={FIELDS: {"reason": model.batching.refusal}})
        return model


def _choose(
    name: str, folder: Path, override: "ConfigOverride | None"
) -> tuple[ModelConfig, dict[str, Path]]:
    """Return the configuration of a model, and the folders of the versions to serve."""
    check_name(name)
    available = version_folders(folder)
    config = load_model_config(folder)
    policy = config.versions if override is None or override.versions is None else override.versions
    try:
        chosen = select_versions(policy, list(available))
    except ValueError as error:
        raise ModelConfigError(folder / FILE_NAME, "versions", str(error)) from error
    if config.traffic is not None:
        try:
            config.traffic.check_served(chosen)
        except ValueError as error:
            raise ModelConfigError(folder / FILE_NAME, "traffic", str(error)) from error
    return config, {version: available[version] for version in chosen}


def _config_of(
    version: str, folder: Path, config: ModelConfig, override: "ConfigOverride | None"
) -> ModelConfig:
    """Return the configuration of a version: that of the model, unless the version has its own."""
    if folder.name == version and (folder / FILE_NAME).exists():
        config = _version_config(folder)
    return config if override is None else override.apply_to(config)


def _version_config(folder: Path) -> ModelConfig:
    config = load_model_config(folder)
    for key in ("versions", "traffic"):
        if key in config.model_fields_set:
            path = folder / FILE_NAME
            raise ModelConfigError(path, key, "given for one version", f"it in the {FILE_NAME} above")
    return config


def _explain(name: str, folder: Path, error: Exception) -> str:
    if not isinstance(error, _MODEL_ERRORS):
        _logger.error("model %s cannot be loaded", name, exc_info=error)
        return _encodable(f"{type(error).__name__}: {error}")
    # the reason is shown to clients, who must not learn where the server keeps its files
    return _encodable(str(error).replace(f"{folder.parent}{os.sep}", ""))


def _encodable(reason: str) -> str:
    """Return a reason as JSON can hold it: names of files may have bytes that are not UTF-8, and keys any length."""
    return clipped(reason.encode(errors="backslashreplace").decode())
