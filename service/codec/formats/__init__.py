"""The payload formats that the server takes and answers, one file each.

`FORMATS` is the one list of them: decoding, `Accept`, the API's description and its examples all read it. The order is
that of descriptions and messages, and of preference among the responses that a client takes alike.
"""

from service.codec.format import Format, ResponseFormat
from service.codec.formats.csv import CsvFormat
from service.codec.formats.form import FormFormat
from service.codec.formats.image import IMAGE_FORMAT
from service.codec.formats.json import JSON_TYPE, JsonFormat
from service.codec.formats.npy import NpyFormat
from service.codec.formats.npz import NPZ_TYPE, NpzFormat
from service.codec.formats.text import TextFormat
from service.codec.media_type import MediaType
from service.errors import ServiceError
from service.images.url import URL_ADVICE, is_url

__all__ = [
    "FORMATS",
    "IMAGE_FORMAT",
    "JSON_TYPE",
    "NPZ_TYPE",
    "RESPONSE_FORMATS",
    "find_format",
    "media_types",
    "register_format",
    "sniff",
]

FORMATS: dict[str, Format] = {}
"""The formats by name."""
RESPONSE_FORMATS: dict[str, ResponseFormat] = {}
"""Those among them that answers may have, by media type, the preferred one first."""


def register_format(added: Format) -> Format:
    """Add a payload format; requests and answers may have it from now on.

    Raises:
        ValueError: its name, or one of its media types, is that of another format.
    """
    if added.name in FORMATS:
        raise ValueError(f"payload format {added.name!r} is already registered")
    for media_type in (*added.media_types, *added.aliases):
        taken = _announced(media_type)
        if taken is not None:
            raise ValueError(f"{media_type} is a media type of the payload format {taken.name!r} already")
    FORMATS[added.name] = added
    if isinstance(added, ResponseFormat):
        RESPONSE_FORMATS.update(dict.fromkeys(added.media_types, added))
    return added


def media_types() -> list[str]:
    """Return the media types that requests may have."""
    return [media_type for known in FORMATS.values() for media_type in known.media_types]


def sniff(body: bytes) -> Format | None:
    """Return the format of a body by its first bytes; None if they match none, as those of CSV."""
    return next((known for known in FORMATS.values() if known.matches(body)), None)


def find_format(media_type: MediaType, body: bytes) -> Format:
    """Return the format of a body, by its first bytes if the `Content-Type` does not name one.

    Raises:
        ServiceError: 415 `unsupported_media_type`.
    """
    found = _announced(media_type.name) or sniff(body)
    if found is None:
        given = f"Content-Type {media_type.name[:80]}" if media_type.name else "a body without Content-Type"
        accepted = media_types()
        message = f"{given} is not supported; use one of {', '.join(accepted)}"
        details = {"content_type": media_type.name[:80], "accepted": accepted}
        if is_url(body):
            message = f"the body is a URL; {URL_ADVICE}"
        raise ServiceError(415, "unsupported_media_type", message, details)
    return found


def _announced(name: str) -> Format | None:
    """Return the format that has a media type, None if there is none."""
    for known in FORMATS.values():
        if name in known.media_types or name in known.aliases:
            return known
    return None


for _built_in in (
    FormFormat(),
    IMAGE_FORMAT,
    JsonFormat(),
    NpyFormat(),
    NpzFormat(),
    CsvFormat(),
    TextFormat(),
):
    register_format(_built_in)
