"""The paths that the server treats differently from others: polled, open to all, changing the server, run at once."""

import re

HEALTH_PATHS = frozenset({"/livez", "/readyz", "/v2/health/live", "/v2/health/ready"})
"""What orchestrators poll; needs no key."""
METRICS_PATHS = frozenset({"/metrics"})
"""What monitoring polls."""
POLLED_PATHS = HEALTH_PATHS | METRICS_PATHS
"""Polled every few seconds; served while the server drains."""
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
ADMIN_PATHS = re.compile(
    r"/v2/repository/models/.*/(load|unload)/?|/v2(/.*)?/(trace/setting|logging)/?", re.DOTALL
)
"""Paths where a method that is not for reading changes the server."""
_RUN_ENDS = ("/infer", ":predict", "/embeddings")
"""What the paths end with that run a model."""


def is_admin_call(method: str, path: str) -> bool:
    """Return whether a request changes the server: loads a model, unloads one, changes trace or log settings."""
    return method not in READING_METHODS and ADMIN_PATHS.fullmatch(path) is not None


def is_console_path(path: str) -> bool:
    """Return whether a path is the console's page or a file of it, which hold nothing of a server."""
    return path == "/console" or path.startswith("/console/")


def is_urgent(method: str, path: str) -> bool:
    """Return whether a request is started in the packet that it arrived in: it runs a model, or checks health."""
    return path.endswith(_RUN_ENDS) if method == "POST" else path in HEALTH_PATHS


def is_v2_path(path: str) -> bool:
    """Return whether a path belongs to the Open Inference Protocol."""
    return path == "/v2" or path.startswith("/v2/")
