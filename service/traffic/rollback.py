"""Judges when a version has to give its share back to the stable one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from time import time

from service.config.traffic_config import RollbackConfig
from service.repository.loaded_model import LoadedModel

Endings = Callable[[str, str], tuple[int, int]]
"""(model, version) -> how many of its requests have ended, and how many of these were not answered."""


class RollbackCause(Enum):
    """What made a version give its share back."""

    ERRORS = "errors"
    DIFFERENCE = "difference"
    REQUEST = "request"
    """An administrator asked for it."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """That a version gave its share back.

    Attributes:
        cause: what made it.
        reason: the same as a sentence, with figures.
        epoch_ms: when, in milliseconds since the epoch.
    """

    cause: RollbackCause
    reason: str
    epoch_ms: float = field(default_factory=lambda: time() * 1e3)


TellRollback = Callable[[LoadedModel, Rollback], None]
"""Told of a version that gave its share back, and why."""


class ErrorWatch:
    """Compares how many requests of a version and of the stable one are not answered, in windows one after the other.

    Args:
        config: the limits.
        endings: counts requests.
        model: the model.
        version: the version.
        stable: the stable one.
    """

    def __init__(
        self, config: RollbackConfig, endings: Endings, model: str, version: str, stable: str
    ) -> None:
        self._config = config
        self._endings = partial(endings, model)
        self._version = version
        self._stable = stable
        self.restart()

    def restart(self) -> None:
        """Begin a new window."""
        self._began = self._endings(self._version)
        self._stable_began = self._endings(self._stable)

    def judge(self) -> Rollback | None:
        """Return why the version has to give its share back; None where it need not, or too few requests have ended."""
        ended, failed = _since(self._began, self._endings(self._version))
        if ended < 0:  # the counts began anew
            self.restart()
            return None
        if ended < self._config.least:
            return None
        stable_ended, stable_failed = _since(self._stable_began, self._endings(self._stable))
        self.restart()
        rate = failed / ended
        usual = stable_failed / stable_ended if stable_ended > 0 else 0.0
        if rate - usual <= self._config.errors:
            return None
        reason = (
            f"{failed} of {ended} requests were not answered, {rate:.2%}; of version {self._stable} {usual:.2%}: "
            f"the limit is {self._config.errors:.2%} more"
        )
        return Rollback(RollbackCause.ERRORS, reason)


class DifferenceWatch:
    """Counts shadow runs that differ by more than a limit, in windows one after the other.

    Args:
        config: the limits; `difference` is one of them.
    """

    def __init__(self, config: RollbackConfig) -> None:
        self._config = config
        self.restart()

    def restart(self) -> None:
        """Begin a new window."""
        self._runs = self._bad = 0
        self._largest = 0.0

    def judge(self, relative: float) -> Rollback | None:
        """Count a run; return why the version has to give its share back, None where it need not.

        Args:
            relative: the largest relative difference of its outputs; infinite for a run that failed.
        """
        limit = self._config.difference
        if limit is None:
            return None
        self._runs += 1
        self._bad += relative > limit
        self._largest = max(self._largest, relative)
        if self._runs < self._config.least:
            return None
        runs, bad, largest = self._runs, self._bad, self._largest
        self.restart()
        if bad <= self._config.errors * runs:
            return None
        reason = (
            f"{bad} of {runs} shadow runs failed or differ by more than {limit:g}, by {largest:.2g} at most; the "
            f"limit is {self._config.errors:.2%} of them"
        )
        return Rollback(RollbackCause.DIFFERENCE, reason)


def _since(began: tuple[int, int], now: tuple[int, int]) -> tuple[int, int]:
    return now[0] - began[0], now[1] - began[1]
