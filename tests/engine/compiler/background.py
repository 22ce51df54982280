"""The thread that compiles in the background, which goes on when the test that gave it work has ended."""

from engine.compiler.program import background

_SECONDS = 60.0


def is_busy() -> bool:
    """Return whether the compiler's thread has work; while it looks for some, it holds the lock."""
    with background._lock:
        return background._schedule.is_busy


def wait_until_idle() -> None:
    """Wait until the compiler's thread has nothing left to do."""
    while is_busy():
        background._thread().submit(lambda: None).result(_SECONDS)
