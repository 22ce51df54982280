"""The load of all models at the start, under way while the rest of the server is still being imported."""

from collections.abc import Mapping
from concurrent.futures import Future
from threading import Thread

from service.config.settings import Settings
from service.repository.load_progress import LoadProgress
from service.repository.model_entry import ModelEntry
from service.repository.model_source import ModelSource
from service.repository.repository import load_entries


class Preloader:
    """Loads all models on a thread of its own, from the moment that it is made. Nothing waits for it to end.

    Reading, hashing, packing and compiling leave the interpreter to the thread that imports.

    Args:
        settings: where the models are, and how they are loaded.
        progress: receives the progress; can stop it.
        source: what brings them; by default the folder that the settings name.

    Attributes:
        progress: the same.
        source: the same; None for the folder.
    """

    def __init__(self, settings: Settings, progress: LoadProgress, source: ModelSource | None = None) -> None:
        self.progress = progress
        self.source = source
        self._settings = settings
        self._entries: Future[Mapping[str, ModelEntry]] = Future()
        Thread(target=self._load, name="loader", daemon=True).start()

    def entries(self) -> Mapping[str, ModelEntry]:
        """Return the models by name, once they are loaded.

        Raises:
            RepositoryError: there is no model, or a model is broken and `skip_broken` is not set.
            LoadStoppedError: `progress` was stopped.
        """
        return self._entries.result()

    def release(self) -> None:
        """Forget the models once others have them: one that is unloaded later must not live on here."""
        self._entries = Future()
        self._entries.set_exception(RuntimeError("the models were released"))

    def _load(self) -> None:
        try:
            self._entries.set_result(load_entries(self._settings, self.progress, self.source))
        except BaseException as error:  # whoever asks for the models gets it
            self._entries.set_exception(error)
