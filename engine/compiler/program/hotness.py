"""Which shapes runs had that nothing is compiled for, and which of them is worth compiling first."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from engine.executor import InputSpecs

MOST_SHAPES = 256
"""Shapes that are remembered, the latest: a client may send any number of them."""
LEAST_RUNS = 2
"""Runs before a shape is compiled: most that came once do not come again."""
PAYBACK_FACTOR = 1000.0
"""How many times as much as so far numpy is expected to be spared: compiling may take so many times its time."""


@dataclass(slots=True)
class _Shape:
    runs: int = 0
    seconds: float = 0.0


class Hotness:
    """What numpy layers did for runs on shapes that nothing is compiled for. Safe to use from any thread.

    How often a shape will come is not known. It is expected to come as often again as it came so far, times
    `PAYBACK_FACTOR`, since compiling it takes only what the processor has to spare.
    """

    def __init__(self) -> None:
        self._shapes: OrderedDict[InputSpecs, _Shape] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, inputs: InputSpecs, seconds: float, cost: float) -> bool:
        """Count a run of numpy layers; returns whether its shape is worth compiling by now.

        Args:
            inputs: shape and dtype of each input.
            seconds: what the run took.
            cost: seconds that compiling is expected to take.
        """
        with self._lock:
            shape = self._shapes.setdefault(inputs, _Shape())
            shape.runs += 1
            shape.seconds += seconds
            self._shapes.move_to_end(inputs)
            if len(self._shapes) > MOST_SHAPES:
                self._shapes.popitem(last=False)
            return _is_worth(shape, cost)

    def forget(self, inputs: InputSpecs) -> None:
        """Forget a shape, as it is compiled."""
        with self._lock:
            self._shapes.pop(inputs, None)

    def best(self, cost: float) -> InputSpecs | None:
        """Return the shape that numpy spent most on, of those that are worth compiling; None where none is.

        Args:
            cost: seconds that compiling one is expected to take.
        """
        with self._lock:
            worth = [(shape.seconds, inputs) for inputs, shape in self._worth(cost)]
        return max(worth, key=lambda pair: pair[0])[1] if worth else None

    def count(self, cost: float) -> tuple[int, int]:
        """Return how many shapes are worth compiling, and how many are not so far."""
        with self._lock:
            waiting = len(self._worth(cost))
            return waiting, len(self._shapes) - waiting

    def _worth(self, cost: float) -> list[tuple[InputSpecs, _Shape]]:
        return [(inputs, shape) for inputs, shape in self._shapes.items() if _is_worth(shape, cost)]


def _is_worth(shape: _Shape, cost: float) -> bool:
    return shape.runs >= LEAST_RUNS and shape.seconds * PAYBACK_FACTOR >= cost
