"""All that a server does the first time, before anything is measured."""

import asyncio

from tests.soak.clients import RELOADED, change, reload
from tests.soak.load import Load
from tests.soak.models import VECTOR_BATCHES

LOADS_AT_ONCE = 3
"""Of each model; together they bring up all threads that load models."""


async def warm_up(load: Load) -> None:
    """Have every program compiled, every model loaded again, and every thread and arena brought up."""
    for largest in VECTOR_BATCHES:
        await _reload_all(load, largest)
        await _ask_all(load)


async def _reload_all(load: Load, largest: int) -> None:
    """Have all models loaded that are loaded under load, `vector` with batches of at most `largest` rows."""
    await change(load, "guest", "unload")
    await asyncio.gather(*(reload(load, name, largest) for name in RELOADED * LOADS_AT_ONCE))
    await change(load, "guest", "load")


async def _ask_all(load: Load) -> None:
    """Ask for runs of all numbers of rows, two at once: each worker has an arena of its own."""
    for case in [*load.sized, *load.cases, *load.guests]:
        await asyncio.gather(load.ask_once(case), load.ask_once(case))
    for case in load.visits:  # one by one, as under load: what more at once need ends some time later
        await load.ask_once(case)
