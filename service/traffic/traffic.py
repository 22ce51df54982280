"""The traffic of all models, where routes ask which version serves a request that names none."""

from collections.abc import Iterable, Mapping
from threading import Lock

from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.repository.traffic_schemas import ShadowRunView
from service.traffic.model_traffic import ModelTraffic
from service.traffic.shadows import Shadows


class Traffic:
    """The traffic of the models whose `model.toml` has a `[traffic]` table. That of a model begins when it is loaded.

    `find` and `close` are called on the event loop, the others on any thread.

    Args:
        shadows: makes shadow runs.
    """

    def __init__(self, shadows: Shadows) -> None:
        self._shadows = shadows
        self._models: dict[str, ModelTraffic] = {}
        self._opening = Lock()

    def of(self, entry: ModelEntry) -> ModelTraffic | None:
        """Return the traffic of a model; None where it has no `[traffic]` table."""
        if entry.traffic is None:
            return None
        known = self._models.get(entry.name)
        # each load parses the table again, so that another table, though equal, is another load
        if known is not None and known.config is entry.traffic:
            return known
        with self._opening:
            known = self._models.get(entry.name)
            if known is None or known.config is not entry.traffic:
                known = ModelTraffic(entry)
                self._shadows.watch(entry, known)
                self._models[entry.name] = known
            return known

    def of_all(self, entries: Iterable[ModelEntry]) -> dict[str, ModelTraffic]:
        """Return the traffic of each model that has a `[traffic]` table, by name."""
        found = {entry.name: self.of(entry) for entry in entries}
        return {name: traffic for name, traffic in found.items() if traffic is not None}

    def find(self, entry: ModelEntry, version: str | None, headers: Mapping[bytes, bytes]) -> LoadedModel:
        """Choose the version of a model for a request.

        Args:
            entry: the model.
            version: the version that the request names; None where it names none.
            headers: those of the request, or the like; names are in lower case.

        Raises:
            ServiceError: as `ModelEntry.find`; 503 where no version is served that may be chosen.
        """
        traffic = self.of(entry)  # also where a version is named: its runs may have shadows
        if version is not None or traffic is None:
            return entry.find(version)
        return traffic.choose(entry, headers)

    def find_shadow_run(self, name: str, request_id: str) -> ShadowRunView | None:
        """Return the newest shadow run of a request for a model; None where none is stored."""
        known = self._models.get(name)
        runs = [] if known is None or known.shadow is None else known.shadow.newest_first()
        return next((run for run in runs if run.request_id == request_id), None)

    def close(self) -> None:
        """End all shadow runs."""
        self._shadows.close()
