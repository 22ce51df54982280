"""The payload formats of requests and responses, one file each.

Headers and first bytes choose among them. `FORMATS` is the one list of them: decoding, `Accept`, the API's description
and its examples all read it. The order is that of descriptions and messages, and of preference among the responses that
a client takes alike.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

from python_multipart.multipart import parse_options_header

from engine import Port
from service.codec.decoded import Decoded
from service.codec.format import Clock, Format, RequestBody, ResponseFormat
from service.codec.formats.csv import CsvFormat
from service.codec.formats.form import FormFormat
from service.codec.formats.image import IMAGE_FORMAT
from service.codec.formats.json import JSON_TYPE, JsonFormat
from service.codec.formats.npy import NpyFormat
from service.codec.formats.npz import NPZ_TYPE, NpzFormat
from service.codec.formats.text import TextFormat
from service.codec.response import ResponseDocument
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from service.images.url import URL_ADVICE, is_url

__all__ = [
    "FORMATS",
    "IMAGE_FORMAT",
    "JSON_TYPE",
    "NPZ_TYPE",
    "RESPONSE_FORMATS",
    "MediaType",
    "decode",
    "encode",
    "find_format",
    "media_types",
    "negotiate",
    "parse_media_type",
    "register_format",
    "sniff",
]

FORMATS: dict[str, Format] = {}
"""The formats by name."""
RESPONSE_FORMATS: dict[str, ResponseFormat] = {}
"""Those among them that responses may have, by media type, the preferred one first."""
_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)


def register_format(added: Format) -> Format:
    """Add a payload format; requests and responses may have it from now on.

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


@dataclass(frozen=True, slots=True)
class MediaType:
    """A parsed `Content-Type`: its name, and its parameters by name; names are in lower case."""

    name: str
    parameters: dict[str, str]


def parse_media_type(content_type: str | None) -> MediaType:
    """Parse a `Content-Type` header; the name is empty if there is none.

    Parameters without a value are left out.
    """
    name, parameters = parse_options_header((content_type or "").encode("latin-1", "replace"))
    given = {key.decode("latin-1"): value.decode("latin-1") for key, value in parameters.items() if value}
    return MediaType(name.decode("latin-1").strip().lower(), given)


def decode(
    body: bytes,
    content_type: str | None,
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    *,
    dynamic_batch: bool = False,
) -> Decoded:
    """Turn a request's body into the inputs of a graph.

    Args:
        body: the whole body.
        content_type: the header; where it is missing or none of ours, the first bytes of the body decide.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        dynamic_batch: whether any number of images may be sent, even if the file fixes the size of a batch.

    Raises:
        ServiceError: 400, 413, 415 or 422, as listed in the package's docstring; never anything else.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    limits.check_body(len(body))
    if not body:
        raise ServiceError(400, "empty_body", "the body is empty; send an image, JSON, npy, npz or CSV")
    media_type = parse_media_type(content_type)
    return find_format(media_type, body).decode(
        RequestBody(body, ports, config, limits, media_type.parameters, dynamic_batch)
    )


def negotiate(accept: str | None, others: Sequence[str] = ()) -> str:
    """Choose the media type of a response (RFC 9110, section 12.5.1).

    Args:
        accept: the `Accept` header; None or empty takes anything.
        others: media types that are offered besides the formats of responses, after them.

    Returns:
        That of the highest quality among the formats of responses; the first of those that are equal.

    Raises:
        ServiceError: 406 `not_acceptable`.
    """
    if accept is None or accept.strip() in ("", "*/*"):
        return next(iter(RESPONSE_FORMATS))
    ranges = [_parse(item) for item in accept.lower().split(",")]
    offered = [*RESPONSE_FORMATS, *others]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) > 0:
        return best
    message = f"no response format matches Accept: {accept[:200]}; responses are {' or '.join(offered)}"
    raise ServiceError(406, "not_acceptable", message, {"accept": accept[:200], "offered": offered})


def encode(
    response: ResponseDocument,
    media_type: str,
    received_ns: int,
    clock: Clock = perf_counter_ns,
    limits: Limits | None = None,
) -> Sequence[bytes | memoryview]:
    """Serialise a response and fill in the two times that are known only then.

    Args:
        response: what `build_response` gave.
        media_type: what `negotiate` chose.
        received_ns: `perf_counter_ns` of the moment when the request was complete.
        clock: for tests.
        limits: how large the response may be; None for any size.

    Returns:
        The body, in pieces.

    Raises:
        ServiceError: 413 `response_too_large`.
    """
    return RESPONSE_FORMATS[media_type].encode(response, received_ns, clock, limits)


def _parse(item: str) -> tuple[str, float]:
    """Return a media range and its quality, 1 where it gives none or one that cannot be read."""
    name, *parameters = item.split(";")
    matches = (_QUALITY.fullmatch(parameter) for parameter in parameters)
    quality = next((float(match[1]) for match in matches if match), 1.0)
    return name.strip(), quality


def _quality(offered: str, ranges: list[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that covers a media type, 0 where none does."""
    given = dict(ranges)
    for pattern in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        if pattern in given:
            return given[pattern]
    return 0.0


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
