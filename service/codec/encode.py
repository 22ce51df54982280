"""Encodes answers as bytes."""

from collections.abc import Sequence
from time import perf_counter_ns

from service.codec.answer import AnswerDocument
from service.codec.format import Clock
from service.codec.formats import ANSWER_FORMATS
from service.config.limits import Limits


def encode(
    answer: AnswerDocument,
    media_type: str,
    received_ns: int,
    clock: Clock = perf_counter_ns,
    limits: Limits | None = None,
) -> Sequence[bytes | memoryview]:
    """Serialise an answer and fill in the two times that are known only then.

    Args:
        answer: what `build_answer` gave.
        media_type: what `negotiate` chose.
        received_ns: `perf_counter_ns` of the moment when the request was complete.
        clock: for tests.
        limits: how large the answer may be; None for any size.

    Returns:
        The body, in pieces.

    Raises:
        ServiceError: 413 `answer_too_large`.
    """
    return ANSWER_FORMATS[media_type].encode(answer, received_ns, clock, limits)
