"""Errors as clients of the protocol expect them: the same body, with the status that Triton uses."""

from service.errors import ServiceError

_STATUSES = {406: 400, 415: 400, 422: 400}
"""Status elsewhere -> status in the protocol: Triton returns 400 to every faulty request."""


def as_v2(error: ServiceError) -> ServiceError:
    """Return an error with the status that it has in the protocol."""
    status = _STATUSES.get(error.status)
    if status is None:
        return error
    return ServiceError(status, error.code, error.message, error.details, error.headers)
