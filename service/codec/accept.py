"""Which kind of answer a client takes (RFC 9110, section 12.5.1)."""

import re
from collections.abc import Sequence

from service.codec.formats import ANSWER_FORMATS
from service.errors import ServiceError

_QUALITY = re.compile(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)


def negotiate(accept: str | None, others: Sequence[str] = ()) -> str:
    """Choose the media type of an answer.

    Args:
        accept: the `Accept` header; None or empty takes anything.
        others: media types that are offered besides the formats of answers, after them.

    Returns:
        That of the highest quality among the formats of answers; the first of those that are equal.

    Raises:
        ServiceError: 406 `not_acceptable`.
    """
    if accept is None or not accept.strip():
        return next(iter(ANSWER_FORMATS))
    ranges = [_parse(item) for item in accept.lower().split(",")]
    offered = [*ANSWER_FORMATS, *others]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))
    if _quality(best, ranges) > 0:
        return best
    message = f"no answer fits Accept: {accept[:200]}; answers are {' or '.join(offered)}"
    raise ServiceError(406, "not_acceptable", message, {"accept": accept[:200], "offered": offered})


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
