"""How many times as many requests per second this server answers as others, where the arithmetic costs little."""

from collections.abc import Mapping, Sequence

from tests.bench.service.results import OURS, LoadResult

LEAST = {"MLServer": 2.0, "LitServe": 3.0}
"""Beginning of a server's name -> the least speedup over it that is wanted."""
MODEL, FORM = "digits", "binary"


def speedups(loads: Sequence[LoadResult], ours: str = OURS) -> dict[str, float]:
    """Return this server's requests per second over those of each other server, at the most connections.

    Empty where this server was not measured under that load.

    Args:
        loads: what was measured.
        ours: this server's name, which shows how many processes it has.
    """
    measured = [load for load in loads if (load.model, load.form) == (MODEL, FORM)]
    most = max((load.connections for load in measured), default=0)
    rates = {load.server: load.timings.per_second for load in measured if load.connections == most}
    if (rate := rates.get(ours)) is None:
        return {}
    return {server: rate / other for server, other in rates.items() if not server.startswith(OURS)}


def shortfalls(found: Mapping[str, float]) -> list[str]:
    """Return a sentence for each server over which the speedup is too small."""
    return [
        f"{server}: {found[server]:.2f} times its requests per second; at least {least:g} times are wanted"
        for beginning, least in LEAST.items()
        for server in found
        if server.startswith(beginning) and found[server] < least
    ]
