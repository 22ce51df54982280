"""Gives a call up when its client disconnects."""

import asyncio
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from service.scheduling.delay_queue import DelayQueue
from service.scheduling.pending_call import PendingCall

DELAY_SECONDS = 0.02
"""Seconds before the channel is watched: most answers come sooner, and a task for each of them would cost more."""


class DisconnectWatcher:
    """Gives a call up when a message on its ASGI channel says that the client has disconnected.

    Args:
        pending: the call.
        receive: the channel of its request, whose body was read to the end.
        delay: calls back after `DELAY_SECONDS`.
    """

    __slots__ = ("_delay", "_pending", "_receive", "_task")

    def __init__(self, pending: PendingCall[Any], receive: Receive, delay: DelayQueue) -> None:
        self._pending = pending
        self._receive = receive
        self._delay = delay
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch from a little later on, until `stop`."""
        self._delay.add(self._begin)

    def stop(self) -> None:
        """Watch no longer."""
        self._delay.discard(self._begin)
        if self._task is not None:
            self._task.cancel()
            self._task = None  # its CancelledError refers to this watcher: they would keep each other alive

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._pending.give_up("the client left", ClientDisconnect())
