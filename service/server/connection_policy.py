"""What connections may hold, all of them together."""

from dataclasses import dataclass, field
from types import ModuleType

from service.config.settings import Settings
from service.server.throttle import Throttle
from service.server.unsent_responses import UnsentResponses

resource: ModuleType | None
try:
    import resource
except ModuleNotFoundError:  # Windows counts handles, of which there are plenty
    resource = None

MAX_CONNECTIONS = 4096
"""Connections that there may be, where there are file descriptors for them."""
SEND_TIMEOUT = 30.0
"""Seconds after which a client is cut off that reads less than 4 KiB of its response per second."""
RESERVED_DESCRIPTORS = 64
"""File descriptors that are left for all else."""


@dataclass(slots=True)
class ConnectionPolicy:
    """What all connections of a server share.

    Attributes:
        most: how many there may be.
        unsent: the responses that their clients do not read.
        throttle: begins requests that were sent ahead of the responses, and those that are not urgent, a few at a time.
        is_leaving: whether each is to end with its next response, so that clients connect to other servers.
    """

    most: int
    unsent: UnsentResponses
    throttle: Throttle = field(default_factory=Throttle)
    is_leaving: bool = False


def connection_policy(settings: Settings) -> ConnectionPolicy:
    """Return what a server's settings say of its connections."""
    return ConnectionPolicy(max_connections(), UnsentResponses(settings.unsent_bytes, SEND_TIMEOUT))


def max_connections() -> int:
    """Return the maximum number of open connections, as the limit of file descriptors allows."""
    if resource is None:
        return MAX_CONNECTIONS
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, int(descriptors) - RESERVED_DESCRIPTORS))
