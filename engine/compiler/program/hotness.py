"""Hotness counter of input shapes without a program, which chooses the next one to compile."""

import threading
from dataclasses import dataclass

from engine.compiler.program.lru import Lru
from engine.run.plan import InputSpecs

MAX_SHAPES = 256
"""Maximum counted shapes (LRU): a client may send any number of them."""
LEAST_RUNS = 2
"""Minimum runs before a shape is compiled: most shapes occur only once."""
PAYBACK_FACTOR = 1000.0
"""Maximum compile time as a multiple of the reference implementation's time on the shape so far."""


@dataclass(slots=True)
class _Shape:
    runs: int = 0
    seconds: float = 0.0


class Hotness:
    """Runs and seconds of the reference implementation by shape, for shapes without a program. Thread-safe.

    A shape is expected to recur as often as so far, times `PAYBACK_FACTOR`, since compilation uses only idle processor
    time.
    """

    def __init__(self) -> None:
        self._shapes: Lru[InputSpecs, _Shape] = Lru(MAX_SHAPES)
        self._lock = threading.Lock()

    def note(self, inputs: InputSpecs, seconds: float, cost: float) -> bool:
        """Count a run of the reference implementation; returns whether its shape is hot.

        Args:
            inputs: shape and dtype of each input.
            seconds: duration of the run.
            cost: expected compile time in seconds.
        """
        with self._lock:
            shape = self._shapes.setdefault(inputs, _Shape())
            shape.runs += 1
            shape.seconds += seconds
            self._shapes.put(inputs, shape)
            return _is_hot(shape, cost)

    def forget(self, inputs: InputSpecs) -> None:
        """Remove a shape whose program is being compiled."""
        with self._lock:
            self._shapes.pop(inputs, None)

    def hottest(self, cost: float) -> InputSpecs | None:
        """Return the hottest shape; None if none is hot.

        Args:
            cost: expected compile time in seconds.
        """
        with self._lock:
            hot = [(shape.seconds, inputs) for inputs, shape in self._hot(cost)]
        return max(hot, key=lambda pair: pair[0])[1] if hot else None

    def count(self, cost: float) -> tuple[int, int]:
        """Return the number of hot shapes, and of the others."""
        with self._lock:
            waiting = len(self._hot(cost))
            return waiting, len(self._shapes) - waiting

    def _hot(self, cost: float) -> list[tuple[InputSpecs, _Shape]]:
        return [(inputs, shape) for inputs, shape in self._shapes.items() if _is_hot(shape, cost)]


def _is_hot(shape: _Shape, cost: float) -> bool:
    return shape.runs >= LEAST_RUNS and shape.seconds * PAYBACK_FACTOR >= cost
