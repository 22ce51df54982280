"""Sampling: which runs of a model are traced although no client asks for a trace."""

import threading
from enum import Enum
from typing import Self


class TraceMode(Enum):
    """Whether runs are sampled; the values are Triton's trace levels."""

    OFF = "OFF"
    TIMESTAMPS = "TIMESTAMPS"


UNLIMITED = -1
"""Count of a setting that samples without end."""


class TraceSetting:
    """Samples every N-th run of a model. Calls that ask for a trace get one whatever is set here.

    A model has a setting of its own, in which None stands for the server's value. May be changed while the server runs;
    any thread may read and set the attributes.

    Args:
        rate: the initial `own_rate`.
        level: the initial `own_level`.
        count: the initial `own_count`.

    Attributes:
        own_level: `OFF` samples no run.
        own_rate: N, where every N-th run is sampled; 0 samples no run.
        own_count: how many runs are still to be sampled; `UNLIMITED` for no end. Models without a count of their own
            share the server's.
    """

    def __init__(self, rate: int, level: TraceMode = TraceMode.TIMESTAMPS, count: int = UNLIMITED) -> None:
        self.own_level: TraceMode | None = level
        self.own_rate: int | None = rate
        self.own_count: int | None = count
        self._server: Self | None = None
        self._runs = 0
        self._lock = threading.Lock()

    def for_model(self) -> "TraceSetting":
        """Return a new setting for a model, which takes all values from this one until it is changed."""
        setting = type(self)(0)
        setting.own_level = setting.own_rate = setting.own_count = None
        setting._server = self
        setting._lock = self._lock
        return setting

    @property
    def level(self) -> TraceMode:
        """The level in force."""
        return self._in_force()[0]

    @property
    def rate(self) -> int:
        """The rate in force."""
        return self._in_force()[1]

    @property
    def count(self) -> int:
        """The count in force."""
        return self._in_force()[2]

    def _in_force(self) -> tuple[TraceMode, int, int]:
        """Return level, rate and count together: each request asks for them."""
        server = self._server
        level, rate, count = (TraceMode.OFF, 0, UNLIMITED) if server is None else server._in_force()
        return (
            level if self.own_level is None else self.own_level,
            rate if self.own_rate is None else self.own_rate,
            count if self.own_count is None else self.own_count,
        )

    def sample(self) -> bool:
        """Count a run; returns whether it is to be traced."""
        level, rate, count = self._in_force()
        if rate <= 0 or level is TraceMode.OFF or count == 0:
            return False
        with self._lock:
            self._runs += 1
            if self._runs % rate or self.count == 0:
                return False
            self._count_down()
            return True

    def _count_down(self) -> None:
        if self.own_count is None:
            if self._server is not None:
                self._server._count_down()
        elif self.own_count > 0:
            self.own_count -= 1
