"""What log records carry besides their messages; `service.telemetry.logging` writes it out."""

from contextvars import ContextVar

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Id of the request that is being handled; None outside of any."""

FIELDS = "fields"
"""Key in a record's `extra` that holds a dict of values to log beside the message."""
