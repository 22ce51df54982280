"""`ModelStreamInfer`: many requests in one call, whose responses come in the order of the requests."""

import asyncio
from collections import Counter
from contextlib import suppress

from service.context import Peer
from service.errors import ServiceError, shutting_down
from service.grpc.front import Front, Incoming
from service.grpc.inference import infer, read_message
from service.grpc.messages import INFERENCE_SERVICE, ModelInferResponse, message_class
from service.grpc.status import details_of
from service.grpc.wire import prefix
from service.lifecycle import Phase

PATH = f"/{INFERENCE_SERVICE}/ModelStreamInfer"
_Response = message_class("inference.ModelStreamInferResponse")
_RESPONSE = 2
"""Number of the field of a `ModelStreamInferResponse` for a response."""
_MAX_AHEAD = 8
"""Requests of a stream that run, or whose responses are not sent yet; no more are read meanwhile."""
MAX_STREAMS = 64
"""Streams that one client may have open."""
_STRICT_KEY = b"triton_grpc_error"
"""Metadata of clients that want the stream to end with the status of the first error."""

_final = ModelInferResponse()
_final.parameters["triton_final_response"].bool_param = True
_FINAL: bytes = _final.SerializeToString()
"""What is appended to each response: there is no other to its request."""

_Responses = asyncio.Queue["asyncio.Task[bytes | ServiceError] | None"]


class Streams:
    """Serves `ModelStreamInfer`. Used on the event loop only.

    Args:
        front: admits calls.
    """

    def __init__(self, front: Front) -> None:
        self._front = front
        self._readers: set[asyncio.Task[None]] = set()
        self._open: Counter[Peer] = Counter()

    def drain(self) -> None:
        """Read no more requests; each stream ends with the responses to those that it has sent."""
        for reader in self._readers:
            reader.cancel()

    async def run(self, incoming: Incoming) -> bytes:
        """Respond to the requests of a stream; returns the end of it, which is no message.

        Raises:
            ServiceError: 429 or 503; of a strict stream also the first error.
        """
        client = incoming.context.client
        if self._open[client] >= MAX_STREAMS:
            message = f"a client may have {MAX_STREAMS} streams open; close one of them"
            raise ServiceError(429, "too_many_streams", message, {"limit": MAX_STREAMS})
        self._open[client] += 1
        try:
            await self._exchange(incoming)
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]
        if self._is_draining:
            raise shutting_down()
        return b""

    @property
    def _is_draining(self) -> bool:
        return self._front.services.lifecycle.phase is Phase.DRAINING

    async def _exchange(self, call: Incoming) -> None:
        responses, room = _Responses(), asyncio.Semaphore(_MAX_AHEAD)
        try:
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(self._read(call, responses, room, tasks))
                reader.add_done_callback(self._readers.discard)
                await self._write(call, responses, room)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _read(
        self, call: Incoming, responses: _Responses, room: asyncio.Semaphore, tasks: asyncio.TaskGroup
    ) -> None:
        """Begin with each request that comes, until the client sends no more or the server drains."""
        # not before it runs: a reader that is cancelled before would never end the stream
        if (reader := asyncio.current_task()) is not None:
            self._readers.add(reader)
        try:
            while not self._is_draining:
                await room.acquire()
                if not isinstance(data := await call.rpc.read(), bytes):
                    break
                request = Incoming(call.rpc, call.context, data=data)
                responses.put_nowait(tasks.create_task(self._respond(request)))
        except asyncio.CancelledError:
            if not self._is_draining:
                raise
        responses.put_nowait(None)

    async def _write(self, call: Incoming, responses: _Responses, room: asyncio.Semaphore) -> None:
        """Send the responses, each as soon as it is there and those before it are sent.

        A message that is being sent is never aborted: gRPC would not let the call be ended afterwards.

        Raises:
            ServiceError: the stream is strict, and a request was refused.
        """
        unread, client = self._front.unread, call.context.client
        while (task := await responses.get()) is not None:
            response = await task
            if isinstance(response, ServiceError):
                raise response
            unread.add(client, len(response))
            try:
                await call.rpc.write(response)
            finally:
                unread.remove(client, len(response))
            room.release()

    async def _respond(self, incoming: Incoming) -> bytes | ServiceError:
        """Return a `ModelStreamInferResponse`, an error in it where there is no response; if strict, the error."""
        spans = self._front.spans
        span = None if spans is None else spans.begin_call(PATH[1:], None)
        outcome = await self._front.attempt(self._infer, incoming, span)
        if isinstance(outcome, bytes):
            return prefix(_RESPONSE, len(outcome) + len(_FINAL)) + outcome + _FINAL
        is_strict = incoming.context.headers.get(_STRICT_KEY) == b"true"
        return outcome if is_strict else _failed(incoming, outcome)

    async def _infer(self, incoming: Incoming) -> bytes:
        with self._front.accepted(incoming) as reservation:
            reservation.expect(len(incoming.data))
            return await infer(self._front.services, incoming)


def _failed(incoming: Incoming, refusal: ServiceError) -> bytes:
    """Return the response to a request that is refused, with the client's id of it where that can be read."""
    response = _Response(error_message=details_of(refusal))
    response.infer_response.MergeFromString(_FINAL)
    response.infer_response.id = incoming.own_id
    if incoming.data:  # it was refused before it was parsed, or cannot be
        with suppress(ServiceError):
            response.infer_response.id = read_message(incoming.data)[0].id
    written: bytes = response.SerializeToString()
    return written
