"""Negative cache of inputs whose compilation timed out."""

import threading
from collections import OrderedDict

from engine.errors import BuildTimeoutError
from engine.run.plan import InputSpecs


class TimedOutShapes:
    """Inputs whose compilation timed out (LRU). Thread-safe.

    Args:
        kept: maximum entries.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._errors: OrderedDict[InputSpecs, BuildTimeoutError] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, inputs: InputSpecs, error: BuildTimeoutError) -> None:
        """Record a timeout of compilation for such inputs."""
        with self._lock:
            self._errors[inputs] = error
            if len(self._errors) > self._kept:
                self._errors.popitem(last=False)

    def check(self, inputs: InputSpecs) -> None:
        """Check that compilation for such inputs did not time out.

        Raises:
            BuildTimeoutError: it was.
        """
        with self._lock:
            error = self._errors.get(inputs)
        if error is not None:
            raise error
