"""Between a call and httpx, for clients of both kinds: options, requests, responses and errors."""

import re
import ssl
from typing import Any, TypeVar

import httpx
import orjson

from service.client.calls import Call, Parts, Response
from service.client.errors import ConnectionFailedError, DeadlineError, ResponseError, error_of
from service.client.retries import Attempts

T = TypeVar("T")

CONNECT_SECONDS = 5.0
"""How long a connection may take to be made."""
_SILENT_SECONDS = 120.0
"""How long a server may be silent where a call has no deadline; longer than servers let a request take by default."""
_RETRIED = (429, 503)
_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
_NEARLY = 0.05
"""Seconds before a deadline at which a time-out is taken for the deadline's."""


def client_options(base_url: str, key: str | None, verify: ssl.SSLContext | bool) -> dict[str, Any]:
    """Return what both kinds of httpx's clients are made with.

    Args:
        base_url: address of the server.
        key: an API key of it.
        verify: whether, or by which certificates, the server's certificate is checked.

    Raises:
        ValueError: the key is empty, or has characters that no header can carry.
    """
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise ValueError(
            "key: is empty, or has characters that a header cannot carry; expected one line of ASCII"
        )
    return {
        "base_url": base_url,
        "headers": {} if key is None else {"authorization": f"Bearer {key}"},
        "verify": verify,
        "limits": httpx.Limits(max_connections=100, max_keepalive_connections=20),
    }


def request_options(call: Call[T], attempts: Attempts) -> dict[str, Any]:
    """Return the arguments of httpx for the next attempt of a call.

    Raises:
        DeadlineError: its deadline has passed.
    """
    remaining = attempts.remaining
    if remaining is not None and remaining <= 0:
        raise late()
    parts: Parts = call.prepare(remaining)
    silent = _SILENT_SECONDS if remaining is None else remaining
    options: dict[str, Any] = {
        "params": dict(parts.query),
        "headers": dict(parts.headers),
        "timeout": httpx.Timeout(silent, connect=min(CONNECT_SECONDS, silent)),
    }
    if parts.pictures:
        options["files"] = [("file", ("picture", picture)) for picture in parts.pictures]
    elif parts.content is not None:
        options["content"] = parts.content
    return options


def receive(response: httpx.Response, attempts: Attempts) -> Response:
    """Read a response that streams, as long as there is time.

    Raises:
        DeadlineError: the deadline has passed; httpx itself bounds the time between two packets only.
    """
    pieces = []
    for piece in response.iter_bytes():
        pieces.append(piece)
        if (attempts.remaining or 1) <= 0:
            raise late()
    return Response(response.status_code, response.headers, b"".join(pieces))


def late() -> DeadlineError:
    """Return the error of a call whose deadline has passed here."""
    return DeadlineError("the deadline has passed before a response came")


def wait_after_failure(error: httpx.RequestError, attempts: Attempts) -> float:
    """Return how long to wait before a call is sent again to which no response came.

    Raises:
        ResponseError: there is a response, but it is not in the encoding that its head names.
        ConnectionFailedError: it is not sent again, as it may have been run, or as `Retries` say.
        DeadlineError: its deadline has passed.
    """
    if isinstance(error, httpx.DecodingError):
        raise ResponseError(f"the response cannot be decompressed: {error}") from error
    wait = attempts.wait_after(None) if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else None
    if wait is not None:
        return wait
    remaining = attempts.remaining
    if isinstance(error, httpx.TimeoutException) and remaining is not None and remaining <= _NEARLY:
        raise late() from error
    reason = _NUMBER.sub("", str(error)) or type(error).__name__
    raise ConnectionFailedError(f"no response: {reason}") from error


def wait_after_response(response: Response, attempts: Attempts) -> float | None:
    """Return how long to wait before a refused call is sent again; None where its response stands."""
    retry_after = response.headers.get("retry-after")
    if response.status not in _RETRIED or retry_after is None:
        return None
    return attempts.wait_after(retry_after)


def read(call: Call[T], response: Response) -> T:
    """Return what a call gives, of its last response.

    Raises:
        RefusedError, DeadlineError: the response is an error.
        ResponseError: it is not what is expected.
    """
    if response.status < 400:
        return call.read(response)
    try:
        body = orjson.loads(response.content)
    except ValueError:
        body = None
    raise error_of(response.status, body, response.headers.get("x-request-id"))
