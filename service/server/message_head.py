"""What RFC 9112 has a server refuse in the head of a request, beside what the parser refuses."""

import re
from collections.abc import Iterable

from service.errors import ServiceError

_HOST = re.compile(rb"""[^\x00-\x20"#,/<>?@\\^`{|}\x7f-\xff]*""")
"""A host and port, as far as their characters go (RFC 3986, 3.2.2)."""
_ABSOLUTE = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)")


def check_head(version: str, headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Check the version of a request, its `Host` and its transfer coding; return its `Content-Length`, 0 without.

    Args:
        version: of HTTP, such as "1.1".
        headers: names in lower case, and values.

    Raises:
        ServiceError: 400 `invalid_http`: what is wrong.
    """
    if version not in ("1.1", "1.0"):
        raise _refusal(f"the HTTP version is {version}", "1.1 or 1.0")
    hosts, codings, length = 0, None, 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
            if not _HOST.fullmatch(value):
                raise _refusal("the Host header is malformed", "a host, with or without a port")
        elif name == b"content-length":
            length = int(value)  # the parser takes nothing but digits, once
        elif name == b"transfer-encoding":
            codings = value.lower() if codings is None else codings + b"," + value
    if hosts > 1 or (not hosts and version == "1.1"):
        raise _refusal(f"the request has {hosts} Host headers", "exactly one")
    if codings is not None and codings.strip() != b"chunked":
        raise _refusal("the transfer coding is unsupported", "chunked alone")
    return length


def authority_of(target: bytes) -> bytes | None:
    """Return host and port of an absolute-form target; None for `*`.

    Raises:
        ServiceError: 400 `invalid_http`: it has no valid host.
    """
    if target == b"*":
        return None
    match = _ABSOLUTE.match(target)
    if match is None or not match[1] or not _HOST.fullmatch(match[1]):
        raise _refusal("the request target is malformed", "a path that begins with /, or a URL with a host")
    return match[1]


def _refusal(problem: str, expected: str) -> ServiceError:
    return ServiceError(400, "invalid_http", f"{problem}; expected {expected}")
