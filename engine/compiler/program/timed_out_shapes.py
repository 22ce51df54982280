"""Inputs that a program took too long to compile for."""

import threading
from collections import OrderedDict

from engine.errors import BuildTimeoutError
from engine.executor import InputSpecs


class TimedOutShapes:
    """Inputs that compiling was given up for, the latest of them. Safe to use from any thread.

    Args:
        kept: how many are remembered.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._errors: OrderedDict[InputSpecs, BuildTimeoutError] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, inputs: InputSpecs, error: BuildTimeoutError) -> None:
        """Remember that compiling for such inputs took too long."""
        with self._lock:
            self._errors[inputs] = error
            if len(self._errors) > self._kept:
                self._errors.popitem(last=False)

    def check(self, inputs: InputSpecs) -> None:
        """Check that compiling for such inputs was not given up.

        Raises:
            BuildTimeoutError: it was.
        """
        with self._lock:
            error = self._errors.get(inputs)
        if error is not None:
            raise error
