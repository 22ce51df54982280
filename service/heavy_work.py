"""Tells work that takes long from work that does not, so that it can be left to threads of its own.

A worker that meets heavy work on its way, in the decoder of a body or the encoder of an answer, gives it up with a
`HeavyWorkError`; one of the heavy workers begins anew. What is heavy is decided by numbers that are at hand: bytes,
pixels that the header of an image names. The bounds are such that what is below takes some 50 ms at most.

Heavy work is done in pieces. Between them it is asked whether anybody still waits for it, and other threads get the
interpreter's lock as soon as they want it: they take turns that are a tenth as long as usual, and whoever does heavy
work sleeps for a moment after each of its own. Without that, a thread that waits for the lock may wait for all of the
work: it asks for the lock only after a whole turn in which nobody has released it, and functions of numpy release it
for some microseconds each, in which nobody wakes up.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter, sleep

from engine.run.switch_interval import short_switch_interval

LIGHT_TEXT_BYTES = 4 << 20
"""Most bytes of JSON or CSV, compressed or not, that any worker decodes."""
LIGHT_PACKED_BYTES = 8 << 20
"""Most bytes of compressed arrays, unpacked, that any worker decodes."""
LIGHT_PIXELS = 4_000_000
"""Most pixels of a request's images that any worker decodes; those that take longer to decode count several times."""
LIGHT_ANSWER_BYTES = 2 << 20
"""Most bytes of arrays that any worker captures, or writes as JSON, which are some five times as many."""

_TURN_SECONDS = 0.0003
"""How long heavy work goes on before it gives way, and little more."""
_PAUSE_SECONDS = 0.00001
"""How long it then sleeps; with what the system adds, some 60 µs: a thread that waits for the lock wakes up in 50."""
_TURN_BYTES = 256 << 10
"""Most bytes that are parsed or written within a turn with the interpreter, or little more."""


class HeavyWorkError(Exception):
    """A worker that leaves heavy work to others has met some; what it has begun is to be begun anew."""


class WorkStoppedError(Exception):
    """Nobody waits any more for the work that is in progress; the message says why."""


class _Duties(threading.local):
    """What a thread is for.

    Attributes:
        leaves_heavy_work: whether it leaves heavy work to others.
        stop_reason: tells why the work in progress is to be given up, None while it is to go on; itself None where
            it always goes on.
        turn_end: when the work in progress gives way to other threads; None where it does not.
    """

    leaves_heavy_work = False
    stop_reason: Callable[[], str | None] | None = None
    turn_end: float | None = None


_duties = _Duties()


def leave_heavy_work() -> None:
    """Have `check_weight` refuse heavy work from now on, in this thread."""
    _duties.leaves_heavy_work = True


def check_weight(amount: int, light: int) -> None:
    """Check whether this thread may do a piece of work.

    Args:
        amount: how much it is, in bytes or pixels.
        light: the most that any thread does.

    Raises:
        HeavyWorkError: it is more, and this thread leaves such work to others.
    """
    if amount > light and _duties.leaves_heavy_work:
        raise HeavyWorkError


def turns_for(size: int) -> AbstractContextManager[None]:
    """Return a context for parsing or writing so many bytes: where that takes longer than a turn, turns are short."""
    return short_switch_interval() if size > _TURN_BYTES else nullcontext()


@contextmanager
def stoppable(stop_reason: Callable[[], str | None]) -> Iterator[None]:
    """Have `check_wanted` ask, in this thread and in this context, whether the work is to go on.

    Args:
        stop_reason: tells why it is to be given up, None while it is to go on.
    """
    _duties.stop_reason = stop_reason
    try:
        yield
    finally:
        _duties.stop_reason = None


def give_way() -> None:
    """Sleep for a moment, so that a thread that waits for the interpreter's lock gets it."""
    sleep(_PAUSE_SECONDS)


@contextmanager
def giving_way() -> Iterator[None]:
    """Have `check_wanted` let other threads go on, in this thread and in this context, where a turn has passed."""
    _duties.turn_end = perf_counter() + _TURN_SECONDS
    try:
        with short_switch_interval():
            yield
    finally:
        _duties.turn_end = None


def check_wanted() -> None:
    """Check whether anybody waits for the work that is in progress; to be called before each piece of it.

    Raises:
        WorkStoppedError: nobody does.
    """
    stop_reason = _duties.stop_reason
    reason = None if stop_reason is None else stop_reason()
    if reason is not None:
        raise WorkStoppedError(reason)
    if _duties.turn_end is not None and perf_counter() >= _duties.turn_end:
        give_way()
        _duties.turn_end = perf_counter() + _TURN_SECONDS
