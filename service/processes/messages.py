"""The messages between processes: a JSON object, and bytes; and what processes ask each other."""

import asyncio
import json
import struct
from dataclasses import dataclass, replace
from typing import Any

_LENGTHS = struct.Struct("<IQ")
"""Bytes of the object, and bytes that follow it."""
AGAIN = "kuiper-again"
"""Name of the header by which a process knows that another one did the same before it."""
_AGAIN = (AGAIN, "1")


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        head: what it says.
        data: bytes that come with it.
    """

    head: dict[str, Any]
    data: bytes = b""

    def pack(self) -> bytes:
        """Return the message as it is sent."""
        text = json.dumps(self.head).encode()
        return _LENGTHS.pack(len(text), len(self.data)) + text + self.data


@dataclass(frozen=True, slots=True)
class Call:
    """A request that one process has another answer, past keys, limits and counters: the first has done all that.

    Attributes:
        method: its HTTP method.
        path: its path, decoded.
        query: its query string.
        headers: its headers, as ASGI has them.
        body: its body.
    """

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def again(self) -> "Call":
        """Return the call as processes get it after the first, which alone counts what it changes."""
        return self if _AGAIN in self.headers else replace(self, headers=(*self.headers, _AGAIN))

    def message(self, **head: Any) -> Message:
        """Return the message that brings the call, with more in its head."""
        told = {"method": self.method, "path": self.path, "query": self.query, "headers": self.headers}
        return Message({**head, "call": told}, self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """How another process answered.

    Attributes:
        process: number of its slot.
        status: HTTP status.
        body: body of the answer.
    """

    process: int
    status: int
    body: bytes


def call_of(message: Message) -> Call:
    """Return the call that a message brings."""
    told = message.head["call"]
    headers = tuple((name, value) for name, value in told["headers"])
    return Call(told["method"], told["path"], told["query"], headers, message.data)


def pack_replies(replies: list[Reply]) -> tuple[list[dict[str, int]], bytes]:
    """Return replies as a part of a message's head, and the bodies one after the other."""
    heads = [{"process": reply.process, "status": reply.status, "size": len(reply.body)} for reply in replies]
    return heads, b"".join(reply.body for reply in replies)


def unpack_replies(heads: list[dict[str, int]], data: bytes) -> list[Reply]:
    """Return the replies that `pack_replies` packed."""
    replies, start = [], 0
    for head in heads:
        end = start + head["size"]
        replies.append(Reply(head["process"], head["status"], data[start:end]))
        start = end
    return replies


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message; None where the other process has ended."""
    try:
        size, length = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        head = json.loads(await reader.readexactly(size))
        return Message(head, await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
