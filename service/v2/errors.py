"""Errors as clients of the protocol know them: the same body, with one of Triton's statuses."""

from service.errors import ServiceError

PREFIX = "/v2"
"""Path below which the protocol is spoken."""

_STATUSES = {406: 400, 415: 400, 422: 400}
"""Status elsewhere -> status here: Triton answers 400 to every request that is at fault."""


def speaks_v2(path: str) -> bool:
    """Tell whether a path belongs to the protocol."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def as_v2(error: ServiceError) -> ServiceError:
    """Return an error with the status that it has here."""
    status = _STATUSES.get(error.status)
    if status is None:
        return error
    return ServiceError(status, error.code, error.message, error.details, error.headers)
