"""What a body is: by its `Content-Type`, or by its first bytes."""

import re
from dataclasses import dataclass
from enum import Enum

from service.errors import ServiceError


class Kind(Enum):
    """A kind of body."""

    IMAGE = "image"
    JSON = "json"
    NPY = "npy"
    NPZ = "npz"
    CSV = "csv"
    MULTIPART = "multipart"


KINDS = {
    "multipart/form-data": Kind.MULTIPART,
    "image/png": Kind.IMAGE,
    "image/jpeg": Kind.IMAGE,
    "image/webp": Kind.IMAGE,
    "image/bmp": Kind.IMAGE,
    "application/json": Kind.JSON,
    "application/x-npy": Kind.NPY,
    "application/x-npz": Kind.NPZ,
    "text/csv": Kind.CSV,
}
"""The media types that are taken."""

_ALIASES = {
    "image/jpg": Kind.IMAGE,
    "image/x-ms-bmp": Kind.IMAGE,
    "text/json": Kind.JSON,
    "application/zip": Kind.NPZ,
    "application/csv": Kind.CSV,
}

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), Kind.IMAGE),
    (re.compile(rb"\xff\xd8\xff"), Kind.IMAGE),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), Kind.IMAGE),
    (re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL), Kind.IMAGE),
    (re.compile(rb"\x93NUMPY"), Kind.NPY),
    (re.compile(rb"PK(\x03\x04|\x05\x06)"), Kind.NPZ),
    (re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\{"), Kind.JSON),
)

_PARAMETER = re.compile(r';\s*([^\s=;]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)')


@dataclass(frozen=True, slots=True)
class MediaType:
    """A `Content-Type`: its name in lower case, and its parameters by names in lower case."""

    name: str
    parameters: dict[str, str]

    @property
    def kind(self) -> Kind | None:
        """The kind of body that it announces, None where it announces none of ours."""
        return KINDS.get(self.name) or _ALIASES.get(self.name)


def parse_media_type(content_type: str | None) -> MediaType:
    """Read a `Content-Type` header; an empty name where there is none."""
    text = content_type or ""
    name, _, _ = text.partition(";")
    parameters = {key.lower(): _unquoted(value) for key, value in _PARAMETER.findall(text)}
    return MediaType(name.strip().lower(), parameters)


def sniff(body: bytes) -> Kind | None:
    """Tell a body by its first bytes; None for one that has no mark, as CSV."""
    return next((kind for signature, kind in _SIGNATURES if signature.match(body)), None)


def find_kind(media_type: MediaType, body: bytes) -> Kind:
    """Tell what a body is, by its first bytes where the header does not say.

    Raises:
        ServiceError: 415 `unsupported_media_type`.
    """
    kind = media_type.kind or sniff(body)
    if kind is None:
        given = f"Content-Type {media_type.name[:80]}" if media_type.name else "a body without Content-Type"
        message = f"{given} is not taken; send one of {', '.join(KINDS)}"
        details = {"content_type": media_type.name[:80], "accepted": list(KINDS)}
        raise ServiceError(415, "unsupported_media_type", message, details)
    return kind


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value
