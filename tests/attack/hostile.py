"""Hostile requests, made by chance from sound ones: whatever they are, none is answered 500."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.soak.wire import SoakRequest

MAX_BYTES = 4096
"""Maximum bytes that are inserted or repeated."""
_TARGETS = (
    *("/infer?model=digits&trace=%s", "/infer?model=digits&capture=%s", "/infer?model=digits&top_k=%s"),
    *(
        "/infer?model=digits&version=%s",
        "/infer?model=%s",
        "/infer?%s=1",
        "/%s",
        "/v2/%s",
        "/v2/models/%s/infer",
    ),
    *(
        "/v2/models/vector/versions/%s/infer",
        "/models/%s",
        "/graph?model=%s",
        "/traces/%s",
        "/%%69nfer?model=%s",
    ),
    *("/v2/models/%s/config", "/v2/models/%s/ready", "/v2/models/%s/stats", "/metrics?%s", "/../%s", "//%s"),
)
_VALUES = (
    *("", "-1", "0", "99999999999999999999", "1e309", "NaN", "null", "true", "stats", "../../etc/passwd"),
    *(
        "%00",
        "%ff%fe",
        "%2e%2e%2f",
        "a" * 3000,
        "digits%00",
        "digits,digits",
        "'",
        '"',
        "%F0%9F%92%A9",
        "x=y&x=z",
    ),
    *("1/../2", "%0d%0aSet-Cookie:a", ";", "*", "{}", "[]", "0x10", "\u0661", "1_000"),
)
_HEADERS = (
    *(
        ("Content-Type", value)
        for value in ("", "a/b", "text/csv; charset=utf-16", "application/json;;", "x" * 999)
    ),
    *(("Accept", value) for value in ("", "*/*;q=2", "text/html", "application/x-npz;q=0.1, */*", ",,,")),
    *(("Content-Encoding", value) for value in ("gzip", "deflate", "br", "gzip, gzip", "")),
    *(("Inference-Header-Content-Length", value) for value in ("0", "1", "-1", "x", "99999999999", "10")),
    *(("Expect", value) for value in ("100-continue", "nothing")),
    *(("Connection", value) for value in ("upgrade", "close", "keep-alive, TE")),
    *(("X-Request-ID", value) for value in ("\x7f", "a" * 200, "ok")),
    *(("Origin", value) for value in ("null", "https://evil.example")),
    ("Host", "evil.example"),
    ("Transfer-Encoding", "gzip"),
    ("Accept-Encoding", "gzip;q=x"),
)
_METHODS = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW")
_INTERESTING = (
    b"",
    b"\0",
    b"\xff" * 8,
    b"[" * 500,
    b"{",
    b'"',
    b"1e999,",
    b"-0.0",
    b"\r\n",
    b"PK\x03\x04",
    b"\x89PNG\r\n",
)


@dataclass(frozen=True, slots=True)
class Hostile:
    """A hostile request.

    Attributes:
        name: what was done.
        data: what is sent.
        ends: whether the client sends no more afterwards, and reads what comes: what was sent may be no request, or
            half of one.
    """

    name: str
    data: bytes
    ends: bool = False


def hostile(chance: Random, sound: Sequence[SoakRequest]) -> Hostile:
    """Return a hostile request, made of one of these."""
    return chance.choice(_KINDS)(chance, chance.choice(sound))


def _change_body(chance: Random, request: SoakRequest) -> Hostile:
    body = request.body
    for _ in range(chance.choice((1, 1, 2, 5))):
        body = chance.choice(_BODY_CHANGES)(chance, body)
    return Hostile("body", _encoded(replace(request, body=body)))


def _change_headers(chance: Random, request: SoakRequest) -> Hostile:
    headers = {**request.headers, **dict(chance.sample(_HEADERS, chance.choice((1, 1, 2, 3))))}
    changed = SoakRequest(request.method, request.target, headers, request.body)
    # an encoding that is not there, or a wish to go on in another protocol, leaves a body that is not parsed
    return Hostile("headers", _encoded(changed), ends=True)


def _change_target(chance: Random, request: SoakRequest) -> Hostile:
    target = chance.choice(_TARGETS) % chance.choice(_VALUES)
    return Hostile("target", _encoded(SoakRequest("POST", target, request.headers, request.body)), ends=True)


def _change_method(chance: Random, request: SoakRequest) -> Hostile:
    changed = SoakRequest(chance.choice(_METHODS), request.target, request.headers, request.body)
    return Hostile("method", _encoded(changed), ends=True)


def _change_bytes(chance: Random, request: SoakRequest) -> Hostile:
    """Change the bytes of a head: mostly, what comes of it is no HTTP."""
    head = _overwrite(chance, request.head())
    return Hostile("bytes", head + request.wire_body(), ends=True)


def _smuggle(chance: Random, request: SoakRequest) -> Hostile:
    """Give two lengths, or a request within the body of another."""
    inner = SoakRequest("POST", "/v2/repository/models/digits/unload", {}, b"").head()
    lines = chance.choice(
        (
            b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
            b"Content-Length: 5\r\nContent-Length: 6\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Content-Length: +5\r\n",
            b"Content-Length : 5\r\n",
            b"Transfer-Encoding: xchunked\r\n",
            b"Transfer-Encoding:\tchunked\r\n",
        )
    )
    head = f"POST {request.target} HTTP/1.1\r\nHost: soak\r\n".encode() + lines + b"\r\n"
    return Hostile("smuggled", head + chance.choice((b"", b"0\r\n\r\n", b"5\r\nabc")) + inner, ends=True)


def _leave(chance: Random, request: SoakRequest) -> Hostile:
    """Send a part of a request, and no more."""
    data = request.head() + request.wire_body()
    return Hostile("part", data[: chance.randrange(1, len(data))], ends=True)


def _flip(chance: Random, body: bytes) -> bytes:
    if not body:
        return b"\0"
    place = chance.randrange(len(body))
    return body[:place] + bytes([body[place] ^ 1 << chance.randrange(8)]) + body[place + 1 :]


def _cut(chance: Random, body: bytes) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def _insert(chance: Random, body: bytes) -> bytes:
    place = chance.randrange(len(body) + 1)
    return body[:place] + chance.choice(_INTERESTING) + body[place:]


def _repeat(chance: Random, body: bytes) -> bytes:
    start = chance.randrange(len(body) + 1)
    piece = body[start : start + chance.randrange(1, MAX_BYTES)]
    return body[:start] + piece + body[start:]


def _overwrite(chance: Random, data: bytes) -> bytes:
    start = chance.randrange(len(data))
    stop = min(len(data), start + chance.choice((1, 1, 2, 8)))
    return data[:start] + chance.randbytes(stop - start) + data[stop:]


def _encoded(request: SoakRequest) -> bytes:
    """Return a request as bytes; what is no Latin-1 in its head goes as UTF-8, as careless clients send it."""
    return request.head() + request.wire_body()


_BODY_CHANGES: Sequence[Callable[[Random, bytes], bytes]] = (_flip, _flip, _cut, _insert, _repeat)
_KINDS: Sequence[Callable[[Random, SoakRequest], Hostile]] = (
    *[_change_body] * 6,
    _change_headers,
    _change_target,
    _change_method,
    _change_bytes,
    _smuggle,
    _leave,
)
