"""The traffic of one model since it was loaded."""

import logging
from collections.abc import Mapping

from service.log_context import FIELDS
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.traffic.split import Split

_logger = logging.getLogger(__name__)


class ModelTraffic:
    """Chooses the version of requests that name none, and counts its choices.

    Used on the event loop; other threads may read the counts meanwhile. It keeps no loaded model alive.

    Args:
        entry: the model as it was loaded; it has a `[traffic]` table.

    Attributes:
        config: that table.
        shares: the part of the requests that each version is to get, lowest version first; empty where no version
            that has a weight is served.
        stable: the version with the largest share; None where none has one.
        chosen: version -> how many requests it was chosen for.
    """

    def __init__(self, entry: ModelEntry) -> None:
        if entry.traffic is None:
            raise ValueError(f"model {entry.name!r} has no traffic")
        self.config = entry.traffic
        self.shares: Mapping[str, float] = self.config.shares(entry.versions)
        self.stable = self.config.stable(entry.versions)
        self.chosen = dict.fromkeys(self.shares, 0)
        self._split = Split(entry.name, self.shares) if self.shares else None
        sticky = self.config.sticky
        self._sticky = None if sticky is None else sticky.lower().encode()
        absent = sorted(
            {version for version, weight in self.config.weights.items() if weight} - self.shares.keys()
        )
        if absent:
            fields = {"model": entry.name, "versions": absent, "shares": dict(self.shares)}
            _logger.warning("share of a version goes to others, as it is not served", extra={FIELDS: fields})

    def choose(self, entry: ModelEntry, headers: Mapping[bytes, bytes]) -> LoadedModel:
        """Return the version that answers a request which names none.

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
