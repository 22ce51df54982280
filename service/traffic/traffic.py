"""The traffic of all models, where routes ask which version answers a request that names none."""

from collections.abc import Iterable, Mapping
from threading import Lock

from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.traffic.model_traffic import ModelTraffic


class Traffic:
    """The traffic of the models whose `model.toml` has a `[traffic]` table. That of a model begins when it is loaded.

    `choose` is called on the event loop, `of` on any thread.
    """

    def __init__(self) -> None:
        self._models: dict[str, ModelTraffic] = {}
        self._opening = Lock()

    def of(self, entry: ModelEntry) -> ModelTraffic | None:
        """Return the traffic of a model; None where it has no `[traffic]` table."""
        if entry.traffic is None:
            return None
        known = self._models.get(entry.name)
        # each load reads the table anew, so that another table, though equal, is another load
        if known is not None and known.config is entry.traffic:
            return known
        with self._opening:
            known = self._models.get(entry.name)
            if known is None or known.config is not entry.traffic:
                known = self._models[entry.name] = ModelTraffic(entry)
            return known

    def of_all(self, entries: Iterable[ModelEntry]) -> dict[str, ModelTraffic]:
        """Return the traffic of each model that has a `[traffic]` table, by name."""
        found = {entry.name: self.of(entry) for entry in entries}
        return {name: traffic for name, traffic in found.items() if traffic is not None}

    def choose(self, entry: ModelEntry, headers: Mapping[bytes, bytes]) -> LoadedModel:
        """Return the version of a model that answers a request which names none.

        Args:
            entry: the model.
            headers: those of the request, or the like; names are in lower case.

        Raises:
            ServiceError: 503 where no version is served that may be chosen.
        """
        traffic = self.of(entry)
        return entry.find(None) if traffic is None else traffic.choose(entry, headers)
