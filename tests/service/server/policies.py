"""Limits of connections for tests."""

from service.server.connection_policy import ConnectionPolicy
from service.server.unsent_responses import UnsentResponses


def make_policy(most: int = 1000, unsent: int = 1 << 30, period: float = 60.0) -> ConnectionPolicy:
    """Return limits that nothing comes near unless a test sets them."""
    return ConnectionPolicy(most, UnsentResponses(unsent, period))
