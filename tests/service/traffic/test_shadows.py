"""Shadow runs yield: to requests, to the limits of memory, and to the end of the server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import pytest

from engine import InputError, RunResult, RunStoppedError
from service.codec import Decoded, Options
from service.config.settings import Settings
from service.repository.model_entry import ModelEntry
from service.repository.repository import load_repository
from service.scheduling.job import Job, ProtocolName, Timestamps
from service.scheduling.scheduler import Scheduler
from service.traffic import shadows
from service.traffic.model_traffic import ModelTraffic
from service.traffic.shadow_statistics import ShadowOutcome
from service.traffic.shadows import Shadows
from tests.service.scheduling.stubs import SOON
from tests.service.traffic.test_shadow import SHADOW

pytestmark = pytest.mark.anyio

INPUTS = {"0": np.array([[1, 2, 3]], np.float32)}


class Server:
    """Shadow runs of a model, beside workers of which the test says how many are busy."""

    def __init__(self, entry: ModelEntry, workers: int = 2) -> None:
        self.busy = 0
        settings = Settings(models=Path("nowhere"), workers=workers)
        scheduler = Scheduler(settings)
        scheduler.busy_workers = lambda: self.busy  # type: ignore[method-assign]
        self.entry = entry
        self.traffic = ModelTraffic(entry)
        self.shadows = Shadows(scheduler, workers, lambda *_: None)
        self.shadows.watch(entry, self.traffic)

    async def respond(self, version: str = "1") -> str:
        """Submit a call, and do what a worker does; returns the response."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        call: Job[str] = Job(
            model=self.entry.versions[version],
            protocol=ProtocolName.INFER,
            request_id="r",
            decode=lambda: Decoded(INPUTS, Options()),
            encode=lambda _: "response",
            timestamps=Timestamps(perf_counter_ns()),
        )
        self.shadows.mirror(call, future)
        decoded = call.decode()
        outputs = call.model.graph.forward(decoded.inputs)
        future.set_result(call.encode(RunResult(outputs)))
        await asyncio.sleep(0)  # until its callbacks are called
        return future.result()

    @property
    def outcomes(self) -> dict[ShadowOutcome, int]:
        """What became of the calls so far, those that came to nothing left out."""
        assert self.traffic.shadow is not None
        return {outcome: count for outcome, count in self.traffic.shadow.outcomes.items() if count}

    async def ended(self, count: int = 1) -> dict[ShadowOutcome, int]:
        """Wait until so many calls have come to an end, and return what became of them."""
        async with asyncio.timeout(SOON):
            while sum(self.outcomes.values()) < count:
                await asyncio.sleep(0)
        return self.outcomes


@pytest.fixture
def server(root: Path) -> Iterator[Server]:
    (root / "m/model.toml").write_text(SHADOW)
    repository = load_repository(Settings(models=root, warm_up=False, backend="numpy"))
    made = Server(repository.entry("m"))
    yield made
    made.shadows.close()


async def test_a_run_is_made_while_workers_are_idle(server: Server) -> None:
    assert await server.respond() == "response"
    assert await server.ended() == {ShadowOutcome.DIFFERS: 1}


async def test_the_shadow_has_no_shadow(server: Server) -> None:
    assert await server.respond("2") == "response"
    assert server.outcomes == {}


async def test_no_run_is_made_while_half_of_the_workers_are_busy(server: Server) -> None:
    server.busy = 1
    await server.respond()
    assert await server.ended() == {ShadowOutcome.NO_IDLE_WORKER: 1}


async def test_nothing_waits_behind_a_run_that_waits(server: Server) -> None:
    server.busy = 1
    await server.respond()
    await server.respond()
    assert server.outcomes == {ShadowOutcome.NO_IDLE_WORKER: 1}
    assert await server.ended(2) == {ShadowOutcome.NO_IDLE_WORKER: 2}


async def test_a_run_stops_when_requests_need_the_last_worker(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, began = asyncio.get_running_loop(), asyncio.Event()

    def run_rows(*_: object, stop: Any, **__: object) -> RunResult:
        loop.call_soon_threadsafe(began.set)
        while stop() is None:
            pass
        raise RunStoppedError(stop())

    monkeypatch.setattr(shadows, "run_rows", run_rows)
    await server.respond()
    async with asyncio.timeout(SOON):
        await began.wait()
    await server.respond("2")
    assert server.outcomes == {}
    server.busy = 1
    await server.respond("2")
    assert await server.ended() == {ShadowOutcome.NO_IDLE_WORKER: 1}


async def test_runs_that_meet_requests_are_spared_in_the_end(server: Server) -> None:
    server.shadows._saved = 0.0
    for _ in range(190):
        await server.respond("2")
    await server.respond()  # one request in two hundred may be met
    assert server.outcomes == {ShadowOutcome.SPARED: 1}
    for _ in range(10):
        await server.respond("2")
    await server.respond()
    assert await server.ended(2) == {ShadowOutcome.SPARED: 1, ShadowOutcome.DIFFERS: 1}


async def test_large_calls_are_not_kept(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadows, "MAX_BYTES", 23)  # inputs and outputs have 12 bytes each
    await server.respond()
    assert server.outcomes == {ShadowOutcome.TOO_LARGE: 1}


async def test_a_run_that_fails_is_counted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_rows(*_: object, **__: object) -> RunResult:
        raise InputError("no such input")

    monkeypatch.setattr(shadows, "run_rows", run_rows)
    await server.respond()
    assert await server.ended() == {ShadowOutcome.FAILED: 1}
    assert server.traffic.shadow is not None
    (run,) = server.traffic.shadow.newest_first()
    assert (run.error, run.max_rel) == ("no such input", None)


async def test_no_run_begins_when_the_server_ends(server: Server) -> None:
    await server.respond()
    server.shadows.close()
    assert await server.ended() == {ShadowOutcome.NO_IDLE_WORKER: 1}
    await server.respond()
    assert server.outcomes == {ShadowOutcome.NO_IDLE_WORKER: 2}
