"""How far the loading of models has come, and the one way to stop it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[str], None]
"""Called with the name of each part of a load that may take seconds, as "compiling digits"; raises to stop it."""


class LoadStoppedError(Exception):
    """A load was aborted before its next step, because the server shuts down."""


def go_on(step: str) -> None:
    """Ignore a step, and stop nothing."""
    del step


@dataclass(frozen=True, slots=True)
class LoadState:
    """How far the loading has come at one moment.

    Attributes:
        loaded: number of models that are loaded, or turned out to be broken.
        models: number of models that there are; None until the folder is read.
        steps: what is being done now, the step that has taken longest first.
    """

    loaded: int
    models: int | None
    steps: tuple[str, ...]

    @property
    def count(self) -> str:
        """How many models are loaded, as "3 of 17 models"; empty until the folder is read."""
        return "" if self.models is None else f"{self.loaded} of {self.models} models"

    def __str__(self) -> str:
        """Return the state in words, as "3 of 17 models, compiling digits batch 8"."""
        return ", ".join(part for part in (self.count, *self.steps[:1]) if part)


class LoadProgress:
    """Counts the models that are loaded at the start, knows what is done to the others, and can stop all loads.

    Any thread may call any method.

    Args:
        watch: called at each change, on the thread that made it.
    """

    def __init__(self, watch: Callable[[LoadState], None] = lambda _: None) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._watching = threading.RLock()
        self._models: int | None = None
        self._loaded = 0
        self._steps: dict[int, str] = {}
        self._reason = ""  # of the thread that waits alone
        self._stopped = threading.Event()

    @property
    def state(self) -> LoadState:
        """How far the loading has come."""
        with self._lock:
            return LoadState(self._loaded, self._models, tuple(self._steps.values()))

    def expect(self, models: int) -> None:
        """Note how many models there are, none of them loaded yet."""
        with self._lock:
            self._models = models
            self._loaded = 0
            self._steps.clear()
        self._report()

    def step(self, text: str) -> None:
        """Note what the calling thread does next; what it waited for before stays reported during the first step.

        Raises:
            LoadStoppedError: `stop` was called.
        """
        reason, self._reason = self._reason, ""  # the step after it shows that the wait is over
        self._note(f"{reason}; {text}" if reason else text)

    def loaded_one(self) -> None:
        """Note that the calling thread is done with a model."""
        with self._lock:
            self._steps.pop(threading.get_ident(), None)
            self._loaded += 1
        self._report()

    def check(self, step: str = "") -> None:
        """Do nothing, unless loads are to stop; a `Step` that leaves no trace.

        Raises:
            LoadStoppedError: `stop` was called.
        """
        del step
        if self._stopped.is_set():
            raise LoadStoppedError("the server is shutting down")

    def wait(self, text: str, seconds: float) -> None:
        """Note what the calling thread waits for, and wait.

        Raises:
            LoadStoppedError: `stop` was called.
        """
        self._note(text)
        self._reason = text
        self._stopped.wait(seconds)
        self.check()

    def stop(self) -> None:
        """Have every load end before its next step; nothing is watched any more."""
        with self._watching:
            self._stopped.set()

    def _report(self) -> None:
        with self._watching:  # of two threads, the one that reports last reports the last state
            if not self._stopped.is_set():
                self._watch(self.state)

    def _note(self, text: str) -> None:
        self.check()
        with self._lock:
            self._steps.pop(threading.get_ident(), None)
            self._steps[threading.get_ident()] = text
        self._report()
