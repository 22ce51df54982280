"""Sampling: which runs of a model are traced although no client asks for a trace."""

import threading
from collections import ChainMap
from typing import Any

_lock = threading.Lock()


class TraceSetting:
    """Samples every N-th run of a model. Calls that ask for a trace get one whatever is set here.

    May be changed while the server runs, by any thread.

    Args:
        values: the values in force, by Triton's names; changes go into the first of its maps.

    Attributes:
        values: `trace_level`: `TIMESTAMPS`, or `OFF` for no samples; `trace_rate`: N, where every N-th run is sampled,
            0 for none; `trace_count`: how many runs are still to be sampled, -1 for no end. Models without a count of
            their own share the server's.
    """

    def __init__(self, values: ChainMap[str, Any]) -> None:
        self.values = values
        self._runs = 0

    @classmethod
    def of_server(cls, rate: int) -> "TraceSetting":
        """Return the setting of a server at its start."""
        start = {"trace_level": "TIMESTAMPS", "trace_rate": rate, "trace_count": -1}
        return cls(ChainMap({}, start))

    def for_model(self) -> "TraceSetting":
        """Return a new setting for a model, which takes all values from this one until it is changed."""
        return TraceSetting(self.values.new_child())

    def sample(self) -> bool:
        """Count a run; returns whether it is to be traced."""
        values, rate = self.values, self.values["trace_rate"]
        if not rate or values["trace_level"] == "OFF":
            return False
        with _lock:
            self._runs += 1
            if self._runs % rate or not values["trace_count"]:
                return False
            if values["trace_count"] > 0:
                next(own for own in values.maps if "trace_count" in own)["trace_count"] -= 1
            return True
