"""Shows at the terminal, or in the log, how far the loading of models has come."""

import logging
from contextvars import Context
from threading import Lock
from time import monotonic

from service.log_context import FIELDS
from service.repository.load_progress import LoadState
from service.telemetry.status_line import show_status

_SECONDS = 1.0
"""Between two lines of the log about the same start."""
_AGAIN_SECONDS = 60.0
"""Between two lines that are the same, as those of a store that cannot be read."""

_logger = logging.getLogger(__name__)


class LoadReport:
    """Shows each state on a terminal, and logs one a second where there is none, the same one once a minute."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._next = monotonic() + _SECONDS
        self._sent: dict[str, float] = {}

    def show(self, state: LoadState) -> None:
        """Show a new state; any thread may call this."""
        is_over = state.loaded == state.models
        if show_status("" if is_over else f"loading {state}"):
            return
        if not is_over and self._is_due(str(state)):
            # in no context: that of the calling thread is about one model, the state about all
            Context().run(_logger.info, "loading models", extra={FIELDS: {"progress": str(state)}})

    def _is_due(self, text: str) -> bool:
        with self._lock:
            now = monotonic()
            self._sent = {sent: when for sent, when in self._sent.items() if now < when + _AGAIN_SECONDS}
            is_due = now >= self._next and text not in self._sent
            if is_due:
                self._next = now + _SECONDS
                self._sent[text] = now
            return is_due
