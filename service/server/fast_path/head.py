"""The head of a plain request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Fields = Sequence[tuple[bytes, bytes]]
"""Headers: names in lower case, and values."""

_UNUSUAL: Final = frozenset({b"transfer-encoding", b"content-encoding", b"expect", b"upgrade", b"trailer"})
_CONNECTIONS: Final = frozenset({b"keep-alive", b"close"})


@dataclass(frozen=True, slots=True)
class Head:
    """What a plain request says before its body.

    Attributes:
        path: its path.
        query: its query, undecoded.
        headers: its headers; each came once.
        length: how many bytes its body has.
    """

    path: str
    query: str
    headers: dict[str, str]
    length: int


def read_head(url: bytes, fields: Fields, longest: int) -> Head | None:
    """Return the head of a request that is plain, None for any other.

    A plain request has a body of known length, sent as it is, each header once, and a path without escapes.

    Args:
        url: what stands behind the method.
        fields: its headers.
        longest: most bytes of a plain request's body.
    """
    if not url.startswith(b"/") or b"%" in url.partition(b"?")[0] or b"#" in url:
        return None
    known = dict(fields)
    if len(known) != len(fields) or not known.keys().isdisjoint(_UNUSUAL):
        return None
    if known.get(b"connection", b"close").lower() not in _CONNECTIONS:
        return None
    length = known.get(b"content-length", b"")
    if not length.isdigit() or len(length) >= 20 or int(length) > longest:
        return None
    path, _, query = url.decode("latin-1").partition("?")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in fields}
    return Head(path, query, headers, int(length))
