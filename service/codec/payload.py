"""Decodes request bodies and encodes responses, each in the format that headers and first bytes choose."""

import re
from collections.abc import Sequence
from time import perf_counter_ns

from engine import Port
from service.codec.decoded import Decoded
from service.codec.format import Clock, RequestBody
from service.codec.formats import RESPONSE_FORMATS, find_format
from service.codec.media_type import parse_media_type
from service.codec.response import ResponseDocument
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError

_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)


def decode(
    body: bytes,
    content_type: str | None,
    ports: Sequence[Port],
    config: ModelConfig,
    limits: Limits,
    *,
    open_batch: bool = False,
) -> Decoded:
    """Turn a request's body into the inputs of a graph.

    Args:
        body: the whole body.
        content_type: the header; where it is missing or none of ours, the first bytes of the body decide.
        ports: the graph's inputs, as `graph.inputs` gives them.
        config: the model's configuration.
        limits: upper bounds on the request's size.
        open_batch: whether any number of images may be sent, even if the file fixes the size of a batch.

    Raises:
        ServiceError: 400, 413, 415 or 422, as listed in the package's docstring; never anything else.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    limits.check_body(len(body))
    if not body:
        raise ServiceError(400, "empty_body", "the body is empty; send an image, JSON, npy, npz or CSV")
    media_type = parse_media_type(content_type)
    return find_format(media_type, body).decode(
        RequestBody(body, ports, config, limits, media_type.parameters, open_batch)
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
