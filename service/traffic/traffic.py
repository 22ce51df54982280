"""The traffic of all models, where routes ask which version answers a request that names none."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Protocol

from service.repository.model_entry import ModelEntry
from service.traffic.choice import Choice
from service.traffic.model_traffic import ModelTraffic
from service.traffic.request_endings import RequestEndings
from service.traffic.rollback import TellRollback
from service.traffic.shadow_statistics import ShadowRun


class ShadowWatch(Protocol):
    """Makes the shadow runs of models."""

    def watch(self, entry: ModelEntry, traffic: ModelTraffic) -> None:
        """Have requests of a model run on its shadow version as well, as far as its `[traffic]` table says."""

    def close(self) -> None:
        """Stop the run that is in progress, and make no more."""


class Traffic:
    """The traffic of the models whose `model.toml` has a `[traffic]` table. That of a model begins when it is loaded.

    `find` and `close` are called on the event loop, the others on any thread.

    Args:
        shadows: makes shadow runs; None: there are none.
        endings: counts the requests whose version is chosen here.

    Attributes:
        tell: told of each version that gave its share back because of what was counted here, on the event loop; None
            where there is no other process.
    """

    def __init__(self, shadows: ShadowWatch | None = None, endings: RequestEndings | None = None) -> None:
        self._shadows = shadows
        self._endings = endings or RequestEndings()
        self.tell: TellRollback | None = None
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
                before, known = known, ModelTraffic(entry, self._endings, self.tell)
                if before is not None:
                    known.take_over(before)
                if self._shadows is not None:
                    self._shadows.watch(entry, known)
                self._models[entry.name] = known
            return known

    def of_all(self, entries: Iterable[ModelEntry]) -> dict[str, ModelTraffic]:
        """Return the traffic of each model that has a `[traffic]` table, by name."""
        found = {entry.name: self.of(entry) for entry in entries}
        return {name: traffic for name, traffic in found.items() if traffic is not None}

    def find(self, entry: ModelEntry, version: str | None, headers: Mapping[bytes, bytes]) -> Choice:
        """Choose the version of a model that answers a request.

        Args:
            entry: the model.
            version: the version that the request names; None where it names none.
            headers: those of the request, or the like; names are in lower case.

        Raises:
            ServiceError: as `ModelEntry.find`; 503 where no version is served that may be chosen.
        """
        traffic = self.of(entry)  # also where a version is named: its runs may have shadows
        if version is not None or traffic is None:
            return Choice(entry.find(version))
        return traffic.choose(entry, headers)

    def find_shadow_run(self, name: str, request_id: str) -> ShadowRun | None:
        """Return the newest shadow run that was made of a request for a model; None where none is kept."""
        known = self._models.get(name)
        return None if known is None or known.shadow is None else known.shadow.find(request_id)

    def close(self) -> None:
        """End all shadow runs."""
        if self._shadows is not None:
            self._shadows.close()
