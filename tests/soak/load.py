"""What the clients of a round share."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from tests.soak.case import LoadCase
from tests.soak.counts import LoadCounts
from tests.soak.wire import SoakConnection

PERIOD = 30.0
"""Seconds until a client that gets no response says so."""


@dataclass
class Load:
    """A round of load.

    Attributes:
        url: the server.
        admin_key: lets models be loaded and unloaded.
        counts: where all that is seen is counted.
        chance: draws what is asked next.
        cases: requests for models that stay loaded.
        guests: requests for the model that comes and goes.
        hurried: requests with short deadlines.
        visits: requests for all but inference.
        sized: requests of every number of rows that a run may have; only the warm-up makes them.
        until: when the round ends, on the clock of `time.monotonic`.
    """

    url: str
    admin_key: str
    counts: LoadCounts
    chance: random.Random
    cases: Sequence[LoadCase]
    guests: Sequence[LoadCase]
    hurried: Sequence[LoadCase]
    visits: Sequence[LoadCase]
    sized: Sequence[LoadCase]
    until: float = field(default=0.0)

    @property
    def is_over(self) -> bool:
        """Whether clients ask nothing more."""
        return monotonic() >= self.until

    def pick(self, cases: Sequence[LoadCase]) -> LoadCase:
        """Draw a case."""
        return self.chance.choice(cases)

    def named(self, model: str) -> list[LoadCase]:
        """Return the cases of a model that are answered when there is room."""
        return [case for case in self.cases if case.model and case.model[0] == model and case.status == 200]

    async def ask(self, connection: SoakConnection, case: LoadCase) -> None:
        """Send a request, and note its response."""
        self.counts.saw(case, await connection.ask(case.request))

    async def ask_once(self, case: LoadCase) -> None:
        """Send a request on a connection of its own, and note its response."""
        connection = await SoakConnection.open(self.url)
        try:
            await self.ask(connection, case)
        finally:
            await connection.close()

    async def run(self, clients: Sequence[Callable[["Load"], Awaitable[None]]], seconds: float) -> None:
        """Let clients ask for some seconds."""
        self.until = monotonic() + seconds
        await asyncio.gather(*(self._repeat(client) for client in clients))

    async def _repeat(self, client: Callable[["Load"], Awaitable[None]]) -> None:
        name = client.__name__
        while not self.is_over:
            try:
                async with asyncio.timeout(max(0.0, self.until - monotonic()) + PERIOD):
                    await client(self)
            except (OSError, EOFError, TimeoutError) as error:
                self.counts.blame(f"{name}: {type(error).__name__}: {error}")
