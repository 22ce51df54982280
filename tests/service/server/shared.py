"""Limits of connections for tests."""

from service.server.connections import Connections


def make_connections(most: int = 1000, unsent: int = 1 << 30) -> Connections:
    """Return what connections share, with limits that nothing comes near unless a test sets them."""
    return Connections(most, unsent)
