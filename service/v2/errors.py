"""Errors as clients of the protocol know them: the same body, with one of Triton's statuses."""

from service.errors import ServiceError

_STATUSES = {406: 400, 415: 400, 422: 400}
"""Status elsewhere -> status here: Triton answers 400 to every request that is at fault."""


def as_v2(error: ServiceError) -> ServiceError:
    """Return an error with the status that it has here."""
    status = _STATUSES.get(error.status)
    if status is None:
        return error
    return ServiceError(status, error.code, error.message, error.details, error.headers)
