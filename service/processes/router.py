"""Passes on what processes ask each other, and puts what they change in one order."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus

from service.processes.child import Child
from service.processes.messages import Call, Message, Reply, call_of, pack_replies

_SECONDS = 4.0
"""How long a process has to answer what another one asks."""
_DIGEST_SECONDS = 60.0
"""How long it has to read all weights that it serves."""
MOST_CHANGES = 1000
"""Changes that processes which start later are told of: of each model, the last load or unload."""
_LOAD_OR_UNLOAD = re.compile("/v2/repository/models/(.*)/(?:un)?load/?", re.DOTALL)

_logger = logging.getLogger(__name__)


class Router:
    """Passes calls from a process to all others that serve.

    Args:
        children: returns the processes.
    """

    def __init__(self, children: Callable[[], Iterable[Child]]) -> None:
        self._children = children
        self._changes: list[Call] = []
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, child: Child, message: Message) -> None:
        """Take a message of a process."""
        kind = message.head["kind"]
        if kind == "loaded":
            self._start(self._catch_up(child))
        elif kind in ("ask", "change"):
            work = self._ask if kind == "ask" else self._change
            self._start(work(child, message.head["number"], call_of(message)))

    async def _catch_up(self, child: Child) -> None:
        """Have a process that has just started do what all others were told to do before; then it may serve."""
        async with self._turn:
            for call in self._changes:
                reply = await child.call(call, None)
                if reply is not None and reply.status >= HTTPStatus.BAD_REQUEST:
                    _logger.error(
                        "process %d did not repeat %s: %s", child.slot.number, call.path, _why(reply)
                    )
            child.is_ready = not child.is_leaving
        child.send(Message({"kind": "go on"}))

    def others(self, child: Child) -> list[Child]:
        """Return the other processes that serve."""
        return [other for other in self._children() if other is not child and other.is_ready]

    async def differing(self, child: Child) -> tuple[list[str], list[str]]:
        """Return the models that a process serves otherwise than another one, and those that it alone cannot serve.

        There are none where one of the two does not tell in time.
        """
        async with self._turn:  # a change is made in one process after the other
            others = self.others(child)
            if not others:
                return [], []
            ours, theirs = await asyncio.gather(*(one.digests(_DIGEST_SECONDS) for one in (child, others[0])))
        if ours is None or theirs is None:
            return [], []
        lost = sorted(name for name, digest in theirs.items() if digest and not ours.get(name))
        differ = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
        return sorted(differ.difference(lost)), lost

    async def _ask(self, child: Child, number: int, call: Call) -> None:
        answers = await asyncio.gather(*(other.call(call, _SECONDS) for other in self.others(child)))
        self._answer(child, number, [reply for reply in answers if reply is not None])

    async def _change(self, child: Child, number: int, call: Call) -> None:
        async with self._turn:
            first = await child.call(call, None)
            if first is None:
                return  # it has ended, and its client knows
            replies = [first]
            if first.status < HTTPStatus.BAD_REQUEST:
                self._keep(call.again())
                for other in self.others(child):
                    reply = await other.call(call.again(), None)
                    if reply is not None:
                        replies.append(reply)
            self._answer(child, number, replies)

    def _keep(self, call: Call) -> None:
        """Keep a change for processes that start later, in place of those that it makes void."""
        kept = [old for old in self._changes if old != call and not _makes_void(call, old)]
        if len(kept) == MOST_CHANGES:
            _logger.error("processes that start later will not repeat %s: too many changes", kept.pop(0).path)
        self._changes = [*kept, call]

    def _answer(self, child: Child, number: int, replies: list[Reply]) -> None:
        heads, data = pack_replies(replies)
        child.send(Message({"kind": "replies", "number": number, "replies": heads}, data))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _makes_void(call: Call, old: Call) -> bool:
    """Return whether a change leaves nothing of an earlier one."""
    loaded, before = _LOAD_OR_UNLOAD.fullmatch(call.path), _LOAD_OR_UNLOAD.fullmatch(old.path)
    return loaded is not None and before is not None and before[1] == loaded[1]


def _why(reply: Reply) -> str:
    return reply.body[:500].decode(errors="replace")
