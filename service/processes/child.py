"""One of several processes, as the one that started it sees it."""

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from service.processes.messages import Call, Message, Reply, read_message
from service.processes.slot import Slot

Take = Callable[["Child", Message], Awaitable[None]]
"""Called with each message of a process that is no reply."""


@dataclass(eq=False, slots=True)
class Child:
    """A process that was started.

    Attributes:
        slot: what it has inherited.
        process: the process.
        writer: the channel to it.
        is_ready: whether its models are loaded, and it does what all processes are told to do.
        is_leaving: whether it was told to end.
        replaced: where another process is being started in its place: whether that came to serve.
        listening: takes its messages until it has ended.
    """

    slot: Slot
    process: asyncio.subprocess.Process
    writer: asyncio.StreamWriter
    is_ready: bool = False
    is_leaving: bool = False
    replaced: asyncio.Future[bool] | None = None
    listening: asyncio.Task[None] | None = None
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: dict[int, asyncio.Future[Reply | None]] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.process.returncode is not None

    def send(self, message: Message) -> None:
        """Send a message; nothing happens where the process has ended."""
        if not self.writer.is_closing():
            self.writer.write(message.pack())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens where the process has ended."""
        self.is_leaving = True
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def hurry(self) -> None:
        """Have it wait no longer for its clients; it was told to end before."""
        self.send(Message({"kind": "hurry"}))

    def leave(self) -> None:
        """Have it end once its clients have their answers."""
        self.is_leaving = True
        self.is_ready = False
        self.send(Message({"kind": "leave"}))

    async def until_ready(self) -> bool:
        """Return once it serves or has ended: whether it serves."""
        ended = asyncio.ensure_future(self.process.wait())
        ready = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait((ended, ready), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        ended.cancel()
        return self._ready.is_set() and not self.has_ended

    async def call(self, call: Call, seconds: float | None) -> Reply | None:
        """Have it answer a call; None where it has not in so many seconds, or has ended."""
        return await self._request(call.message(kind="call", number=next(self._numbers)), seconds)

    async def digests(self, seconds: float) -> dict[str, str] | None:
        """Return model -> digest of what it serves of it, empty where that is not all; None as for `call`."""
        reply = await self._request(Message({"kind": "digests", "number": next(self._numbers)}), seconds)
        return None if reply is None or reply.status != HTTPStatus.OK else json.loads(reply.body)

    async def _request(self, message: Message, seconds: float | None) -> Reply | None:
        if self.writer.is_closing():
            return None
        number = message.head["number"]
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.send(message)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            del self._waiting[number]

    async def listen(self, reader: asyncio.StreamReader, take: Take) -> None:
        """Take its messages until it has ended."""
        while (message := await read_message(reader)) is not None:
            kind = message.head["kind"]
            if kind == "reply":
                self._settle(message)
            else:
                if kind == "ready":
                    self._ready.set()
                await take(self, message)
        self.is_ready = False
        self.writer.close()
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_result(None)

    def _settle(self, message: Message) -> None:
        future = self._waiting.get(message.head["number"])
        if future is not None and not future.done():
            future.set_result(Reply(self.slot.number, message.head["status"], message.data))


async def start_child(slot: Slot, ours: socket.socket, take: Take) -> Child:
    """Start a process: the command of this one again, which reads its settings anew.

    It is of a group of its own, so that Ctrl-C reaches only the one that started it, and hears of its end by the
    channel. It never hears SIGHUP, which is for the one that started it, but may be sent to all that have one name.

    Args:
        slot: what it inherits.
        ours: our end of the channel.
        take: called with each of its messages.

    Raises:
        OSError: the system starts no process.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # it inherits that, from its first moment on
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *sys.orig_argv[1:],
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=slot.descriptors,
            env=os.environ | slot.variables(),
            process_group=0,
        )
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    child = Child(slot, process, writer)
    child.listening = asyncio.create_task(child.listen(reader, take))
    return child
