"""The access log: a line for each request."""

import logging
from typing import Any

from service.context import RequestContext
from service.telemetry.logging import FIELDS

CLIENT_LEFT = 499
"""Status in the log of a request whose client did not wait for one."""

_logger = logging.getLogger("service.access")


def log_access(method: str, path: str, context: RequestContext, status: int) -> None:
    """Log a request that is over.

    Args:
        method: its method.
        path: template of its route; what the client typed where there is none.
        context: what is known of it.
        status: of its answer.
    """
    fields: dict[str, Any] = {
        "method": method,
        "path": path[:200],
        "status": status,
        "duration_ms": round(context.elapsed() * 1000, 3),
        "model": context.model,
    }
    _logger.info("request", extra={FIELDS: fields})
