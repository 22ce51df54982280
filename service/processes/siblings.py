"""The other processes, as one of several sees them: it asks them through the one that started all."""

import asyncio
import itertools
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from service.processes.messages import Call, Message, Reply, call_of, read_message, unpack_replies

SECONDS = 5.0
"""How long a process waits for what it asked; a process that answers later is left out."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Duties:
    """What a process does when it is told to.

    Attributes:
        answer: answers a call of another process.
        digests: returns model -> digest of what is served of it, as JSON; empty where models change by themselves.
        leave: ends the process once its clients have their answers; another one has taken its place.
        stop: ends the process as a signal would; called when the one that started it has ended.
        hurry: ends the drain, as a second signal would.
    """

    answer: Callable[[Call], Awaitable[tuple[int, bytes]]]
    digests: Callable[[], Awaitable[tuple[int, bytes]]]
    leave: Callable[[], None]
    stop: Callable[[], None]
    hurry: Callable[[], None]


class Siblings:
    """The channel of a process. Used on the event loop only, but for `ask_from_thread`.

    Args:
        channel: descriptor of the socket to the process that started it.
        number: number of this process's slot.

    Attributes:
        number: the same.
    """

    def __init__(self, channel: int, number: int) -> None:
        self.number = number
        self._channel = channel
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[list[Reply]]] = {}
        self._numbers = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._may_serve = asyncio.Event()

    async def connect(self, duties: Duties) -> None:
        """Begin to listen to what is told, and to do it."""
        self._loop = asyncio.get_running_loop()
        reader, self._writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=self._channel))
        self._start(self._listen(reader, duties))

    async def catch_up(self) -> None:
        """Return once this process has done what all others were told to do before it was started."""
        self._send(Message({"kind": "loaded"}))
        await self._may_serve.wait()

    def tell_ready(self) -> None:
        """Say that this process serves."""
        self._send(Message({"kind": "ready"}))

    async def ask(self, call: Call) -> list[Reply]:
        """Have every other process that serves answer a call; returns the answers that came in time."""
        return await self._request("ask", call, SECONDS)

    def ask_from_thread(self, call: Call) -> list[Reply]:
        """Do as `ask`, on another thread than the event loop's, which waits."""
        if self._loop is None:
            return []
        return asyncio.run_coroutine_threadsafe(self.ask(call), self._loop).result()

    async def change(self, call: Call) -> list[Reply]:
        """Have every process do what a call says, this one first; if that refuses, none of the others does.

        Changes are made one after the other, whichever process they came to, and again by processes that start later.

        Returns:
            The answers, that of this process first.
        """
        return await self._request("change", call, None)

    async def _request(self, kind: str, call: Call, seconds: float | None) -> list[Reply]:
        if self._writer is None or self._writer.is_closing():
            return []
        number = next(self._numbers)
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._send(call.message(kind=kind, number=number))
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return []
        finally:
            del self._waiting[number]

    async def _listen(self, reader: asyncio.StreamReader, duties: Duties) -> None:
        while (message := await read_message(reader)) is not None:
            kind = message.head["kind"]
            if kind == "call":
                self._start(self._answer(message, duties.answer(call_of(message))))
            elif kind == "digests":
                self._start(self._answer(message, duties.digests()))
            elif kind == "replies":
                self._settle(message)
            elif kind == "go on":
                self._may_serve.set()
            elif kind == "leave":
                duties.leave()
            elif kind == "hurry":
                duties.hurry()
        _logger.error("the process that started this one has ended")
        self._close()
        duties.stop()

    def _close(self) -> None:
        """Ask no more, and let those go on that wait."""
        if self._writer is not None:
            self._writer.close()
        self._may_serve.set()
        for future in self._waiting.values():
            if not future.done():
                future.set_result([])

    async def _answer(self, message: Message, work: Awaitable[tuple[int, bytes]]) -> None:
        try:
            status, body = await work
        except Exception:  # whoever asked would wait for ever, and all changes after this one
            _logger.exception("what another process asked could not be answered")
            status, body = (
                HTTPStatus.INTERNAL_SERVER_ERROR,
                b'{"error": "the process failed; its log says why"}',
            )
        self._send(Message({"kind": "reply", "number": message.head["number"], "status": status}, body))

    def _settle(self, message: Message) -> None:
        future = self._waiting.get(message.head["number"])
        if future is not None and not future.done():
            future.set_result(unpack_replies(message.head["replies"], message.data))

    def _send(self, message: Message) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(message.pack())

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
