"""What other threads have an event loop do."""

import os
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

_ONE = (1).to_bytes(8, "little")


class Inbox(Protocol):
    """Has an event loop call functions."""

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have a function called on the loop's thread, in the order in which they were asked for."""


class DirectInbox:
    """For those who are on the loop's thread: calls at once."""

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function."""
        function(*arguments)


class LoopInbox:
    """Has an event loop call functions; any thread may ask for it.

    To wake a thread that sleeps takes some 40 µs on many virtual machines. `call_soon_threadsafe` holds the
    interpreter's lock meanwhile, so that the loop, once awake, waits for it. Here the lock is released, and a loop that
    has been told to wake up is not told again. Where the system has no `eventfd`, `call_soon_threadsafe` is used.

    Args:
        loop: the event loop, which is running.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_told = False
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if hasattr(os, "eventfd") else None
        if self._event is not None:
            loop.add_reader(self._event, self._read)

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have a function called on the loop's thread, in the order in which they were asked for.

        Raises:
            RuntimeError: the loop is closed.
        """
        if self._event is None:
            self._loop.call_soon_threadsafe(function, *arguments)
            return
        self._calls.append((function, arguments))
        if not self._is_told:
            self._is_told = True
            os.write(self._event, _ONE)

    def close(self) -> None:
        """Have what is left called, and then no more; any thread may call this, when no other asks any more."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._release)

    def _read(self) -> None:
        if self._event is not None:
            os.eventfd_read(self._event)
        self._run()

    def _release(self) -> None:
        if self._event is not None:
            self._loop.remove_reader(self._event)
            os.close(self._event)
            self._event = None
        self._run()

    def _run(self) -> None:
        self._is_told = False  # before the calls are looked at: one that comes now tells the loop again
        for _ in range(len(self._calls)):
            function, arguments = self._calls.popleft()
            try:
                function(*arguments)
            except Exception as error:  # those that follow have to be called as well
                message = f"{function} failed, which another thread asked for"
                self._loop.call_exception_handler({"message": message, "exception": error})
