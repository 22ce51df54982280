"""The errors of a client; `service.client` shows their tree."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """A call has failed."""


class ConnectionFailedError(ClientError):
    """The server cannot be reached, or the connection broke before the response was whole."""


class DeadlineError(ClientError):
    """The deadline of a call has passed, here or at the server."""


class ResponseError(ClientError):
    """A response is not what the server's API describes: perhaps another server listens at this address."""


class RefusedError(ClientError):
    """The server responded with an error.

    Attributes:
        status: the HTTP status.
        code: machine-readable name of the error, as in the list of error codes.
        details: what a program needs in order to react.
        request_id: id of the request, which the server's log has as well.
    """

    def __init__(
        self, status: int, code: str, message: str, details: Mapping[str, Any], request_id: str | None
    ) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code
        self.details = dict(details)
        self.request_id = request_id


class AccessError(RefusedError):
    """A key is missing, is not known, or may not do this."""


class NotFoundError(RefusedError):
    """There is no such model, version or trace."""


class TooLargeError(RefusedError):
    """The body, a picture or the response exceeds a limit of the server."""


class InvalidInputError(RefusedError):
    """The inputs do not fit the model, or cannot be read."""


class BusyError(RefusedError):
    """The server has no room for the call now, or its model is not ready."""


class ServerError(RefusedError):
    """The server has failed."""


_BY_STATUS: dict[int, type[RefusedError]] = {
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
    413: TooLargeError,
    429: BusyError,
    503: BusyError,
}


def error_of(status: int, body: Any, request_id: str | None) -> ClientError:
    """Return the error that a response stands for.

    Args:
        status: its status, 400 or more.
        body: its JSON; whatever else there was, where it is none.
        request_id: its `X-Request-ID`.
    """
    fields = body if isinstance(body, dict) else {}
    details = fields.get("details")
    known: Mapping[str, Any] = details if isinstance(details, dict) else {}
    message = str(fields.get("error") or f"the server returned {status} without a reason")
    code = str(fields.get("code") or f"http_{status}")
    if status == 504:
        return DeadlineError(f"{message} ({status} {code})")
    kind = _BY_STATUS.get(status, InvalidInputError if status < 500 else ServerError)
    return kind(status, code, message, known, request_id)
