"""The traffic of one model since it was loaded."""

import logging
from collections.abc import Mapping

from service.log_context import FIELDS
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.traffic.shadow_statistics import ShadowStatistics
from service.traffic.split import Split

_logger = logging.getLogger(__name__)


class ModelTraffic:
    """Chooses the version of requests that name none, and counts its choices.

    Used on the event loop; other threads may read meanwhile. It holds no reference to a loaded model.

    Args:
        entry: the model as it was loaded; it has a `[traffic]` table.

    Attributes:
        name: the model.
        config: its table.
        shares: the share of each version, lowest version first; empty where no version with a weight is served.
        stable: the version with the largest share; None where none has one.
        chosen: version -> number of requests that it was chosen for.
        shadow: of its shadow runs; None without `shadow`.
    """

    def __init__(self, entry: ModelEntry) -> None:
        if entry.traffic is None:
            raise ValueError(f"model {entry.name!r} has no traffic")
        self.name = entry.name
        self.config = entry.traffic
        self.shares: Mapping[str, float] = self.config.shares(entry.versions)
        self.stable = self.config.stable(entry.versions)
        self.chosen = dict.fromkeys(self.shares, 0)
        self._split = Split(entry.name, self.shares) if self.shares else None
        self._sticky = None if self.config.sticky is None else self.config.sticky.lower().encode()
        shadow = self.config.shadow
        self.shadow = None if shadow is None else ShadowStatistics(entry.name, shadow.share)
        self._warn_of_absent()

    def choose(self, entry: ModelEntry, headers: Mapping[bytes, bytes]) -> LoadedModel:
        """Choose the version for a request that names none.

        Args:
            entry: the model.
            headers: those of the request; names are in lower case.

        Raises:
            ServiceError: 503 `model_broken`: no version that has a weight is served.
        """
        split = self._split
        if split is None:
            raise entry.no_share()
        value = None if self._sticky is None else headers.get(self._sticky)
        version = split.of(value) if value else split.next()
        self.chosen[version] += 1
        return entry.versions[version]

    def _warn_of_absent(self) -> None:
        weighted = {version for version, weight in self.config.weights.items() if weight}
        absent = sorted(weighted - self.shares.keys(), key=int)
        if absent:
            fields = {"model": self.name, "versions": absent, "shares": dict(self.shares)}
            _logger.warning("share of a version goes to others, as it is not served", extra={FIELDS: fields})
