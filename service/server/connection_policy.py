"""What connections may hold, all of them together."""

from dataclasses import dataclass, field
from types import ModuleType

from service.config.settings import Settings
from service.processes.connection_shares import ConnectionShares
from service.server.connection_age import ConnectionAge
from service.server.connection_limit import ConnectionLimit
from service.server.paced_work import PacedWork
from service.server.unsent_answers import UnsentAnswers

resource: ModuleType | None
try:
    import resource
except ModuleNotFoundError:  # Windows counts handles, of which there are plenty
    resource = None

MOST_CONNECTIONS = 4096
"""Connections that there may be by default, where there are file descriptors for them."""
RESERVED_DESCRIPTORS = 64
"""File descriptors that are left for all else."""


@dataclass(frozen=True, slots=True)
class ConnectionPolicy:
    """What all connections of a server share.

    Attributes:
        limit: how many there may be.
        unsent: the answers that their clients do not read.
        age: how old each may become.
        shares: how many this process has of those of several processes.
        paced: begins requests that were sent ahead of the answers, and those that are not urgent, a few at a time.
    """

    limit: ConnectionLimit
    unsent: UnsentAnswers
    age: ConnectionAge = field(default_factory=ConnectionAge)
    shares: ConnectionShares = field(default_factory=ConnectionShares)
    paced: PacedWork = field(default_factory=PacedWork)


def connection_policy(settings: Settings, shares: ConnectionShares | None = None) -> ConnectionPolicy:
    """Return what a server's settings say of its connections.

    Args:
        settings: the settings.
        shares: of several processes.
    """
    limit = ConnectionLimit(settings.max_connections or default_connections())
    unsent = UnsentAnswers(settings.max_unsent_bytes, settings.send_timeout)
    age = ConnectionAge(settings.max_connection_age_seconds)
    return ConnectionPolicy(limit, unsent, age, shares or ConnectionShares())


def default_connections() -> int:
    """Return how many connections there may be where no setting says so: as the limit of descriptors allows."""
    if resource is None:
        return MOST_CONNECTIONS
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, int(descriptors) - RESERVED_DESCRIPTORS))
