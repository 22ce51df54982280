"""Python's garbage collector, where it would only cost time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 10_000
"""Objects by which the youngest generation grows until the collector looks for cycles in it. Requests make none, and
Python's own 700 has it look several times for each batch, and for each module imported, while all threads wait."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Import without the garbage collector: all stays, so it would find nothing, and take a seventh of the time.

    Nor does it look through what was imported in any later collection.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_rarely() -> None:
    """Have the collector look for cycles only where many objects were made."""
    gc.set_threshold(_THRESHOLD, *gc.get_threshold()[1:])
