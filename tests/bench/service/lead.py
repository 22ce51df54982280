"""How far this server is ahead where the server is the cost, not the arithmetic."""

from collections.abc import Sequence

from tests.bench.service.table import Cell

OURS = "Kuiper Serve"
LEAST = {"MLServer": 2.0, "LitServe": 3.0}
"""Beginning of a server's name -> how many times its requests a second this server is to make."""
_MODEL, _FORM = "digits", "binary"


def leads(cells: Sequence[Cell]) -> dict[str, float]:
    """Return, for each other server, how many times its requests a second this server makes at the most connections.

    Empty where this server was not measured under that load.
    """
    measured = [cell for cell in cells if (cell.model, cell.form) == (_MODEL, _FORM)]
    most = max((cell.connections for cell in measured), default=0)
    rates = {cell.server: cell.timings.per_second for cell in measured if cell.connections == most}
    ours = rates.pop(OURS, None)
    return {} if ours is None else {server: ours / rate for server, rate in rates.items()}


def shortfalls(found: dict[str, float]) -> list[str]:
    """Return a sentence for each server that this one is not far enough ahead of."""
    return [
        f"{server}: {found[server]:.2f} times its requests a second; {least:g} times are wanted"
        for beginning, least in LEAST.items()
        for server in found
        if server.startswith(beginning) and found[server] < least
    ]


def leads_line(found: dict[str, float]) -> str:
    """Return the leads for people."""
    listing = ", ".join(f"{lead:.2f} times {server}" for server, lead in found.items())
    return f"{_MODEL}, {_FORM}: {listing}" if found else ""
