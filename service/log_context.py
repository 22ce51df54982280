"""What log records carry besides their messages; `service.telemetry.logging` writes it out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Id of the request that is being handled; None outside of any."""

context_fields: ContextVar[Mapping[str, object]] = ContextVar("context_fields", default=MappingProxyType({}))
"""Values that are logged beside every message, whoever logs it."""

FIELDS = "fields"
"""Key in a record's `extra` that holds a dict of values to log beside the message."""


@contextmanager
def log_fields(**fields: object) -> Iterator[None]:
    """Log these values beside every message of this thread or task while the context lasts, the engine's included."""
    token = context_fields.set({**context_fields.get(), **fields})
    try:
        yield
    finally:
        context_fields.reset(token)
