"""The traffic of one model since it was loaded."""

import logging
from collections.abc import Mapping
from weakref import ref

from service.log_context import FIELDS
from service.repository.model_entry import ModelEntry
from service.traffic.choice import Choice
from service.traffic.request_endings import RequestEndings
from service.traffic.rollback import (
    DifferenceWatch,
    ErrorWatch,
    Rollback,
    RollbackCause,
    TellRollback,
)
from service.traffic.shadow_statistics import ShadowOutcome, ShadowRun, ShadowStatistics
from service.traffic.split import Split

_CHOICES_PER_JUDGEMENT = 8
"""Choices after which it is looked at how many requests have failed, which costs more than a choice."""

_RUN = "run"

_logger = logging.getLogger(__name__)


class ModelTraffic:
    """Chooses the version of requests that name none, counts its choices, and takes shares back.

    Used on the event loop; other threads may read meanwhile. It keeps no loaded model alive.

    Args:
        entry: the model as it was loaded; it has a `[traffic]` table.
        endings: counts the requests whose version is chosen here.
        tell: told of each version that gave its share back because of what was counted here, and has one process count
            it by `roll_back`; None where there is no other process.

    Attributes:
        name: the model.
        config: its table.
        shares: the part of the requests that each version is to get, lowest version first, before any gives its
            share back; empty where no version that has a weight is served.
        stable: the version with the largest share; None where none has one.
        chosen: version -> how many requests it was chosen for.
        rolled_back: version that gave its share back -> why.
        rollbacks: cause -> how often that happened since the model was loaded.
        shadow: what shadow runs have shown; None where there are none.
    """

    def __init__(self, entry: ModelEntry, endings: RequestEndings, tell: TellRollback | None = None) -> None:
        if entry.traffic is None:
            raise ValueError(f"model {entry.name!r} has no traffic")
        self.name = entry.name
        self.config = entry.traffic
        self.shares: Mapping[str, float] = self.config.shares(entry.versions)
        self.stable = self.config.stable(entry.versions)
        self.chosen = dict.fromkeys(self.shares, 0)
        self.rolled_back: dict[str, Rollback] = {}
        self.rollbacks = dict.fromkeys(RollbackCause, 0)
        self._known: set[str] = set()  # versions of `rolled_back` that a process has counted
        self._loaded = {version: ref(entry.versions[version]) for version in self.shares}
        self._split = Split(entry.name, self.shares) if self.shares else None
        self._choices = 0
        self._tell = tell
        self._sticky = None if self.config.sticky is None else self.config.sticky.lower().encode()
        self._open_shadow()
        self._endings = endings
        self._open_watches()
        self._warn_of_absent()

    def choose(self, entry: ModelEntry, headers: Mapping[bytes, bytes]) -> Choice:
        """Choose the version that answers a request which names none.

        Args:
            entry: the model.
            headers: those of the request; names are in lower case.

        Raises:
            ServiceError: 503 `model_broken`: no version that has a weight is served.
        """
        split = self._split
        if split is None or self.stable is None:
            raise entry.no_share()
        value = None if self._sticky is None else headers.get(self._sticky)
        version = split.of(value) if value else split.next()
        if version in self.rolled_back:
            version = self.stable
        self.chosen[version] += 1
        if self._watches:
            self._choices += 1
            if self._choices >= _CHOICES_PER_JUDGEMENT:
                self._choices = 0
                self._judge_errors()
        return Choice(entry.versions[version], self._endings if self._watches else None, is_led=bool(value))

    @property
    def wanted(self) -> dict[str, float]:
        """The part of the requests that each version is to get now."""
        wanted = dict(self.shares)
        for version in self.rolled_back:
            if self.stable is not None:
                wanted[self.stable] += wanted[version]
                wanted[version] = 0.0
        return wanted

    def roll_back(self, version: str, rollback: Rollback, *, is_repeated: bool = False) -> None:
        """Give the share of a version to the stable one; count and log it, unless that has happened.

        Args:
            version: the version.
            rollback: why.
            is_repeated: whether another process did so before, and has counted and logged it.
        """
        if version == self.stable or version not in self.shares or version in self._known:
            return
        self._take_back(version, rollback)
        self._known.add(version)
        if is_repeated:
            return
        self.rollbacks[rollback.cause] += 1
        fields = {"model": self.name, "version": version, "stable": self.stable, "reason": rollback.reason}
        _logger.warning("version rolled back", extra={FIELDS: fields})

    def roll_back_all(self, reason: str, *, is_repeated: bool = False) -> None:
        """Give the shares of all versions to the stable one."""
        for version in self.shares:
            self.roll_back(version, Rollback(RollbackCause.REQUEST, reason), is_repeated=is_repeated)

    def _take_back(self, version: str, rollback: Rollback) -> None:
        if version not in self.rolled_back:
            self.rolled_back = {**self.rolled_back, version: rollback}

    def _roll_back_everywhere(self, version: str, rollback: Rollback) -> None:
        """Take a share back at once; of processes that judge at one time, the first that tells the others counts it."""
        if version == self.stable or version not in self.shares or version in self.rolled_back:
            return
        loaded = self._loaded[version]()
        if self._tell is None or loaded is None:
            self.roll_back(version, rollback)
        else:
            self._take_back(version, rollback)
            self._tell(loaded, rollback)

    def take_over(self, before: "ModelTraffic") -> None:
        """Keep the rollbacks of versions that were not loaded anew with the others of their model."""
        for version, rollback in before.rolled_back.items():
            loaded = before._loaded[version]()
            if loaded is not None and version in self._loaded and loaded is self._loaded[version]():
                self._take_back(version, rollback)
                self.rollbacks = dict(before.rollbacks)
                self._known |= before._known & {version}

    def resume(self) -> None:
        """Undo all rollbacks; what was counted before is judged no more."""
        if self.rolled_back:
            fields = {"model": self.name, "versions": list(self.rolled_back)}
            _logger.warning("rollback undone", extra={FIELDS: fields})
        self.rolled_back = {}
        self._known.clear()
        for watch in self._watches.values():
            watch.restart()
        if self._differences is not None:
            self._differences.restart()

    def shadow_is_due(self) -> bool:
        """Return whether the turn of a request for a shadow run has come; to be asked once for each request."""
        return self._shadow_turns is not None and self._shadow_turns.next() == _RUN

    def drop_shadow(self, outcome: ShadowOutcome) -> None:
        """Count a request that has no shadow run although its turn had come."""
        if self.shadow is not None:
            self.shadow.drop(outcome)

    def observe_shadow(self, run: ShadowRun) -> None:
        """Count a shadow run, and judge the version whose run it was."""
        if self.shadow is None:
            return
        self.shadow.observe(run)
        if run.divergence is not None:
            fields = {"model": self.name, "versions": [run.version, run.shadow], "request_id": run.request_id}
            fields["operator"] = run.divergence.operator
            _logger.warning("versions diverge", extra={FIELDS: fields})
        if self._differences is None:
            return
        judged = run.shadow if run.shadow != self.stable else run.version
        rollback = self._differences.judge(run.relative)
        if rollback is not None:
            self._roll_back_everywhere(judged, rollback)

    def _judge_errors(self) -> None:
        for version, watch in self._watches.items():
            if version in self.rolled_back:
                continue
            rollback = watch.judge()
            if rollback is not None:
                self._roll_back_everywhere(version, rollback)

    def _open_shadow(self) -> None:
        shadow = self.config.shadow
        self.shadow = None if shadow is None else ShadowStatistics()
        self._shadow_turns: Split | None = None
        if shadow is not None:
            parts = {_RUN: shadow.share, "": 1 - shadow.share}
            self._shadow_turns = Split(self.name, {key: part for key, part in parts.items() if part})

    def _open_watches(self) -> None:
        rollback, stable = self.config.rollback, self.stable
        self._watches: dict[str, ErrorWatch] = {}
        self._differences = None if rollback is None else DifferenceWatch(rollback)
        if rollback is not None and stable is not None:
            others = [version for version in self.shares if version != stable]
            self._watches = {
                version: ErrorWatch(rollback, self._endings.of, self.name, version, stable)
                for version in others
            }

    def _warn_of_absent(self) -> None:
        weighted = {version for version, weight in self.config.weights.items() if weight}
        absent = sorted(weighted - self.shares.keys(), key=int)
        if absent:
            fields = {"model": self.name, "versions": absent, "shares": dict(self.shares)}
            _logger.warning("share of a version goes to others, as it is not served", extra={FIELDS: fields})
