"""How often the run of a model is traced without being asked; may be changed at run time."""

import threading
from enum import Enum


class TraceMode(Enum):
    """Whether runs are traced unasked; the values are Triton's trace levels."""

    OFF = "OFF"
    TIMESTAMPS = "TIMESTAMPS"


UNLIMITED = -1


class TraceSetting:
    """Picks every N-th run of a model to be traced. Calls that ask for a trace get one whatever is set here.

    Any thread may read and set the attributes.

    Attributes:
        level: `OFF` traces none unasked.
        rate: every how many runs one is traced; 0 for none.
        count: how many are still to be traced; `UNLIMITED` for no end.
    """

    def __init__(self, rate: int, level: TraceMode = TraceMode.TIMESTAMPS, count: int = UNLIMITED) -> None:
        self.level = level
        self.rate = rate
        self.count = count
        self._runs = 0
        self._lock = threading.Lock()

    def sample(self) -> bool:
        """Count a run, and tell whether it is to be traced."""
        if self.level is TraceMode.OFF or self.rate <= 0 or self.count == 0:
            return False
        with self._lock:
            self._runs += 1
            if self._runs % self.rate or self.count == 0:
                return False
            if self.count > 0:
                self.count -= 1
            return True
