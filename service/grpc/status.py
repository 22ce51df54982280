"""Errors as clients of gRPC see them: a status code, one sentence, and metadata after the response."""

import grpc

from service.errors import ServiceError

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    405: grpc.StatusCode.UNIMPLEMENTED,
    406: grpc.StatusCode.INVALID_ARGUMENT,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.FAILED_PRECONDITION,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    421: grpc.StatusCode.PERMISSION_DENIED,
    422: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""HTTP status of an error -> code of gRPC."""
_MAX_TEXT = 2000
"""Maximum characters of an error that are sent: many clients take no more than 8 KiB of metadata."""
_MAX_FOREIGN_TEXT = 600
"""The same for text beyond ASCII, of which a character may be sent as twelve."""

Metadata = tuple[tuple[str, str], ...]


def code_of(error: ServiceError) -> grpc.StatusCode:
    """Return the status code of an error; UNKNOWN where its HTTP status has none."""
    return _CODES.get(error.status, grpc.StatusCode.UNKNOWN)


def status_of(outcome: bytes | ServiceError | None) -> str:
    """Return the name of the status of a call by its response or error; None where its client has left."""
    if outcome is None:
        return str(grpc.StatusCode.CANCELLED.name)
    return str((code_of(outcome) if isinstance(outcome, ServiceError) else grpc.StatusCode.OK).name)


def details_of(error: ServiceError) -> str:
    """Return the message for the client."""
    text = error.message
    most = _MAX_TEXT if text.isascii() else _MAX_FOREIGN_TEXT
    return text if len(text) <= most else text[: most - 3] + "..."


def metadata_of(error: ServiceError) -> Metadata:
    """Return what programs need to react: `error-code`, and the seconds of `retry-after` where they may try again."""
    seconds = error.headers.get("Retry-After")
    code = ("error-code", error.code)
    return (code,) if seconds is None else (code, ("retry-after", seconds))
