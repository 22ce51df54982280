"""A deadline for the end of the process."""

import logging
import os
import threading
from collections.abc import Callable

_logger = logging.getLogger(__name__)


class ExitDeadline:
    """Ends the process when time is up, even if threads of it are in native code that nothing can interrupt.

    The compiler is such code. Python waits for all threads before it ends a process, and a large model may take longer
    to compile than whoever sent the signal waits.

    Args:
        exit_code: returns the exit code of the process.
    """

    def __init__(self, exit_code: Callable[[], int]) -> None:
        self._exit_code = exit_code
        self._timer: threading.Timer | None = None

    def set(self, seconds: float) -> None:
        """End the process in that many seconds; replaces an earlier deadline."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        _logger.debug("threads are still at work; the process ends without them")
        for handler in logging.getLogger().handlers:
            handler.flush()
        os._exit(self._exit_code())
