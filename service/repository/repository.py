"""The model repository: all models of a folder by name and version, loaded and unloaded while the server runs."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from engine import stray_files
from service.config.machine import this_machine
from service.config.settings import Settings
from service.config.store_url import without_urls
from service.errors import ServiceError
from service.log_context import FIELDS
from service.repository.files import ModelFilesError
from service.repository.fingerprint import Fingerprint, unchanged_versions
from service.repository.load_progress import LoadProgress, LoadStoppedError, Step, go_on
from service.repository.loaded_model import LoadedModel
from service.repository.model_control import check_control, refresh_source
from service.repository.model_entry import (
    NOT_LOADED,
    UNLOADED,
    WHOLE_MODEL,
    IndexLine,
    ModelEntry,
    model_not_found,
    only_served,
)
from service.repository.model_loader import ModelLoader
from service.repository.model_source import ModelSource, SourceError
from service.repository.side_by_side import load_side_by_side, max_at_once

if TYPE_CHECKING:
    from service.config.override import ConfigOverride

Retire = Callable[[LoadedModel], None]

_RETRY_SECONDS = 5.0
"""Between two attempts to find models at the start, where the source is not polled more often."""

_logger = logging.getLogger(__name__)


class RepositoryError(Exception):
    """The server has no model to serve, or a broken one among them; the message says why."""


class ModelRepository:
    """The models that are served, and why others are not.

    Any thread may call any method. `load` and `unload` may take long; the other methods never wait for them, and all
    but `index` only read the current state.

    Args:
        loader: reads models from the folder.
        entries: the models found at the start, by name.
        retire: called with each model that is no longer served, once its successor is; on the thread of `load` or
            `unload`.
    """

    def __init__(
        self, loader: ModelLoader, entries: Mapping[str, ModelEntry], retire: Retire = lambda _: None
    ) -> None:
        self._loader = loader
        self._retire = retire
        self._entries = dict(sorted(entries.items()))  # never mutated: each change replaces it
        self._generation = 0
        self._reading: set[Path] = set()
        self._swapping = Lock()
        self._changing: WeakValueDictionary[str, Lock] = WeakValueDictionary()

    def __iter__(self) -> Iterator[LoadedModel]:
        """Iterate over all served versions of all models, by name, lowest version first."""
        return (model for entry in self._entries.values() for model in entry.versions.values())

    def __len__(self) -> int:
        """Count the served versions of all models."""
        return sum(len(entry.versions) for entry in self._entries.values())

    @property
    def entries(self) -> list[ModelEntry]:
        """All known models, by name."""
        return list(self._entries.values())

    @property
    def defaults(self) -> list[LoadedModel]:
        """The default version of each served model, by name."""
        return [entry.default for entry in self._entries.values() if entry.default is not None]

    @property
    def names(self) -> list[str]:
        """Names of the served models."""
        return [model.name for model in self.defaults]

    @property
    def generation(self) -> int:
        """How often the set of served models has changed."""
        return self._generation

    def find(self, name: str | None, version: str | None = None) -> LoadedModel:
        """Return the model that a request asks for; by default the only model, in its highest version.

        Raises:
            ServiceError: 404 `model_not_found` or `version_not_found`, 422 `model_required`, 503 `model_broken`,
                `model_unloaded` or `model_loading`.
        """
        return self.entry(name).find(version)

    def entry(self, name: str | None) -> ModelEntry:
        """Return the entry of the model that a request asks for; by default that of the only model served.

        Raises:
            ServiceError: 404 `model_not_found`, 422 `model_required`, 503 `model_unloaded` if none is served.
        """
        entries = self._entries
        if name is None:
            return only_served(entries.values())
        if name in entries:
            return entries[name]
        raise model_not_found(name, self.names)

    def versions(self, name: str) -> list[str]:
        """Return the versions of a model that are served, lowest first.

        Raises:
            ServiceError: 404 `model_not_found`.
        """
        return list(self.entry(name).versions)

    def index(self, *, only_ready: bool = False) -> list[IndexLine]:
        """Return a line for each version of each model, by name, lowest version first.

        If models may be loaded on request, those added to the folder after the start are listed too; this reads the
        disk.

        Args:
            only_ready: whether to leave out what is not served.
        """
        entries = dict(self._entries)
        if self._loader.settings.model_control == "explicit":
            for name in self._folders():
                entries.setdefault(name, ModelEntry(name, unavailable={WHOLE_MODEL: NOT_LOADED}))
        lines = [line for _, entry in sorted(entries.items()) for line in entry.index()]
        return [line for line in lines if not only_ready or line.state == "READY"]

    def load(self, name: str, config: "ConfigOverride | None" = None, step: Step = go_on) -> None:
        """Load a model again, all its versions or none, and replace what is served under its name.

        The old versions are served until the new ones are built and warmed up; if that fails, they stay.

        Args:
            name: the model; it may have been added to the folder after the start.
            config: values that replace those of its `model.toml` until it is loaded again.
            step: called before each part that may take seconds.

        Raises:
            ServiceError: 403 `model_control_off`, 404 `model_not_found`, 422 `load_failed` with the reason, 503
                `store_unavailable`.
            LoadStoppedError: `step` raised it; nothing has changed.
        """
        check_control(self._loader.settings)
        with self._lock_of(name):  # of two loads the later one has the newer files
            refresh_source(self._loader.source, name, step)
            self._load(name, config, step, ())

    def refresh(self, name: str, files: Fingerprint, loaded: Fingerprint, step: Step = go_on) -> None:
        """Load a model whose files have changed, as `load` does, whoever may ask for loads.

        Args:
            name: the model.
            files: its files, as its source lists them.
            loaded: the files that it was loaded from; versions that are made of the same ones are not loaded again.
            step: called before each part that may take seconds.

        Raises:
            ServiceError: 404 `model_not_found`, 422 `load_failed` with the reason.
            SourceError: the files changed meanwhile, and what was loaded may be of both states; what was served stays.
            LoadStoppedError: `step` raised it.
        """
        with self._lock_of(name):
            old = self._entries.get(name, ModelEntry(name))
            self._loader.source.take(name, files)
            self._load(name, None, step, unchanged_versions(old.versions, loaded, files))

    def remove(self, name: str) -> None:
        """Stop serving a model whose files are gone, and forget it."""
        with self._lock_of(name):
            self._loader.source.drop(name)
            old = self._entries.get(name, ModelEntry(name))
            self._swap(None, name)
            _logger.info("model removed", extra={FIELDS: {"model": name, "versions": list(old.versions)}})
            self._retire_all(old)

    def unload(self, name: str) -> None:
        """Stop serving a model; do nothing if it is not served.

        Raises:
            ServiceError: 403 `model_control_off`, 404 `model_not_found`.
        """
        check_control(self._loader.settings)
        with self._lock_of(name):
            old = self.entry(name)
            if not old.versions:
                return
            self._swap(
                ModelEntry(name, unavailable=dict.fromkeys(old.versions, UNLOADED) | dict(old.unavailable))
            )
            _logger.info("model unloaded", extra={FIELDS: {"model": name, "versions": list(old.versions)}})
            self._retire_all(old)

    def _load(
        self, name: str, config: "ConfigOverride | None", step: Step, unchanged: Collection[str]
    ) -> None:
        folder = self._folders().get(name)
        if folder is None:
            raise model_not_found(name, self.names)
        old = self._entries.get(name, ModelEntry(name))
        if not old.versions:
            self._swap(ModelEntry(name, is_loading=True))
        kept = {version: model for version, model in old.versions.items() if version in unchanged}
        self._reading.add(folder)
        try:
            new = self._loader.load(name, folder, config, step, kept)
            if new.pipelines:
                new = _with_pipelines({**self._entries, name: new})[name]
            self._loader.source.check(name)
        except (LoadStoppedError, SourceError) as error:
            self._swap(old if old.all_versions else ModelEntry(name, unavailable={WHOLE_MODEL: str(error)}))
            raise
        finally:
            self._reading.discard(folder)
        self._replace(old, new)

    def _replace(self, old: ModelEntry, new: ModelEntry) -> None:
        if not new.unavailable:
            self._swap(new)
            self._retire_all(old, new)
            return
        kept = {version: reason for version, reason in new.unavailable.items() if version not in old.versions}
        self._swap(replace(old, unavailable=kept, pipelines=old.pipelines or new.pipelines))
        self.tidy()
        _logger.warning("model not loaded", extra={FIELDS: {"model": old.name, "reason": new.reason}})
        message = f"model {old.name!r} cannot be loaded: {new.reason}"
        if old.versions:
            message += f" (what was served before goes on: version {', '.join(old.versions)})"
        raise ServiceError(422, "load_failed", message, {"model": old.name, "reason": new.reason})

    def _swap(self, entry: ModelEntry | None, name: str = "") -> None:
        """Replace the entry of a model, or remove that of a name, and make the pipelines again that run it."""
        with self._swapping:
            old = self._entries
            changed = old | {entry.name: entry} if entry else {key: old[key] for key in old if key != name}
            self._entries = _with_pipelines(dict(sorted(changed.items())))
            self._generation += 1
            others = [
                (old[key], new) for key, new in self._entries.items() if old.get(key) not in (None, new)
            ]
        for before, after in others:
            if after.pipelines and (entry is None or after.name != entry.name):
                self._note_pipeline(before, after)

    def _note_pipeline(self, before: ModelEntry, after: ModelEntry) -> None:
        """Retire the versions of a pipeline that were made again, or cannot be any more."""
        if after.unavailable:
            fields = {"model": after.name, "reason": after.reason}
            _logger.warning("pipeline not served", extra={FIELDS: fields})
        for version, model in before.versions.items():
            if after.versions.get(version) is not model:
                self._retire(model)

    def _retire_all(self, old: ModelEntry, new: ModelEntry | None = None) -> None:
        kept = [] if new is None else list(new.versions.values())
        for model in old.versions.values():
            if model not in kept:
                self._retire(model)
        self.tidy()

    def tidy(self) -> None:
        """Have the source forget files that are neither current nor in use."""
        self._loader.source.tidy([*self._reading, *(model.graph.param_path for model in self)])

    def _lock_of(self, name: str) -> Lock:
        """Return the lock that keeps two threads from changing a model at once; it lives as long as one holds it."""
        with self._swapping:
            return self._changing.setdefault(name, Lock())

    def _folders(self) -> Mapping[str, Path]:
        try:
            return self._loader.folders()
        except (ModelFilesError, OSError) as error:
            _logger.warning("models not found", extra={FIELDS: {"reason": str(error)}})
            return {}


def _with_pipelines(entries: Mapping[str, ModelEntry]) -> dict[str, ModelEntry]:
    """Return entries with the pipelines among them made of the others."""
    pipelines = [entry for entry in entries.values() if entry.pipelines]
    if not pipelines:
        return dict(entries)
    from service.repository.pipelines import make_versions  # noqa: PLC0415  # other models need not all these tasks

    return {**entries, **{entry.name: make_versions(entry, entries) for entry in pipelines}}


def load_repository(
    settings: Settings,
    retire: Retire = lambda _: None,
    progress: LoadProgress | None = None,
    entries: Callable[[], Mapping[str, ModelEntry]] | None = None,
    source: ModelSource | None = None,
) -> ModelRepository:
    """Load every model that there is.

    Args:
        settings: where the models are, and how they are loaded.
        retire: as for `ModelRepository`.
        progress: receives the progress; can stop it.
        entries: returns the models, if they are being loaded already.
        source: what brings the models; by default the folder that the settings name.

    Raises:
        RepositoryError, LoadStoppedError: as `load_entries`.
    """
    found = load_entries(settings, progress, source) if entries is None else entries()
    return ModelRepository(ModelLoader(settings, source), found, retire)


def load_entries(
    settings: Settings, progress: LoadProgress | None = None, source: ModelSource | None = None
) -> Mapping[str, ModelEntry]:
    """Load every model that there is, as many at a time as there are cores, small ones first; returns them by name.

    A source that cannot be reached is tried again until it can; so is, where it is polled, one without a model that
    can be served.

    Args:
        settings: where the models are, and how they are loaded.
        progress: receives the progress; can stop it.
        source: what brings the models; by default the folder that the settings name.

    Raises:
        RepositoryError: there is no model, or a model is broken and `skip_broken` is not set.
        LoadStoppedError: `progress` was stopped.
    """
    loader = ModelLoader(settings, source)
    progress = LoadProgress() if progress is None else progress
    reason = ""
    while True:
        try:
            return _load_entries(loader, progress)
        except RepositoryError as error:
            if not (isinstance(error.__cause__, SourceError) or settings.model_control == "poll"):
                raise
            if str(error) != reason:
                reason = str(error)
                _logger.warning("no models yet", extra={FIELDS: {"reason": reason}})
        # clients see it too, who must not learn where the server keeps its files
        shown = without_urls(reason.replace(str(settings.models), settings.models.name))
        progress.wait(shown, min(settings.poll_seconds, _RETRY_SECONDS))


def _load_entries(loader: ModelLoader, progress: LoadProgress) -> Mapping[str, ModelEntry]:
    models = loader.settings.models
    try:
        loader.source.prepare(progress.step)
        folders = loader.folders()
        strays = stray_files(models) if isinstance(models, Path) and models not in folders.values() else []
    except (ModelFilesError, OSError, SourceError) as error:
        raise RepositoryError(str(error)) from error
    for stray in strays:
        _logger.warning(stray)
    entries = load_side_by_side(loader, folders, max_at_once(this_machine()), progress)
    made = _with_pipelines(entries)
    _check(list(made.values()), loader.settings)
    return made


def _check(entries: Sequence[ModelEntry], settings: Settings) -> None:
    broken = {entry.name: entry.reason for entry in entries if entry.unavailable}
    is_served = any(entry.versions for entry in entries)
    listing = "\n".join(f"model {name} is broken: {reason}" for name, reason in broken.items())
    # a folder that is polled may be in the middle of a change: what is broken now is loaded once it is whole
    if broken and not settings.skip_broken and settings.model_control != "poll":
        raise RepositoryError(f"{listing}\n(--skip-broken serves the others)" if is_served else listing)
    if not is_served:
        raise RepositoryError(f"{listing}\nno model is left to be served")
    for name, reason in broken.items():
        _logger.warning("model skipped", extra={FIELDS: {"model": name, "reason": reason}})
