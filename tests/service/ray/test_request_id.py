"""The header of a response that names its request."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.ray.request_id import RequestIdOnce

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("asked", "answered", "left"),
    [
        ([b"one"], [b"one"], []),
        ([b"one", b"two"], [b"two"], [b"two"]),  # Ray takes the first
        ([b"not; sound"], [b"chosen"], [b"chosen"]),
        ([], [b"chosen"], [b"chosen"]),
    ],
)
async def test_an_id_that_ray_adds_is_taken_away(
    asked: list[bytes], answered: list[bytes], left: list[bytes]
) -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        fields = [(b"X-Request-ID", value) for value in answered]
        await send({"type": "http.response.start", "status": 200, "headers": [*fields, (b"etag", b"1")]})
        await send({"type": "http.response.body", "body": b"x"})

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"x-request-id", value) for value in asked]}
    await RequestIdOnce(app)(scope, receive, send)
    assert sent[0]["headers"] == [*((b"x-request-id", value) for value in left), (b"etag", b"1")]
    assert sent[1] == {"type": "http.response.body", "body": b"x"}
