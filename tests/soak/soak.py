"""Minutes of mixed load on a real server, in rounds; between them nothing is asked, and all must be at rest."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import numpy as np
import orjson

from service.scheduling.job import CallStatus
from tests.service.server.process import ServerProcess
from tests.soak.case import LoadCase
from tests.soak.cases import make_cases, make_guest_cases, make_hurried_cases, make_visits
from tests.soak.checkpoint import CheckpointLog
from tests.soak.clients import CLIENTS
from tests.soak.counts import LoadCounts
from tests.soak.load import Load
from tests.soak.models import RECONCILED, write_models
from tests.soak.sizes import RUN_SIZES, make_sized_cases
from tests.soak.usage import Usage, usage_of
from tests.soak.warmup import warm_up
from tests.soak.wire import SoakConnection, SoakRequest

ADMIN_KEY = "the-key-of-the-soak-test"
METRICS = LoadCase("/metrics", SoakRequest("GET", "/metrics"))
MAX_GROWTH = 24 << 20
"""Bytes that the server may grow by in all rounds after the first: what its allocator needs to settle."""
REST_SECONDS = 60.0
"""Seconds until a server that is asked nothing must have come to rest."""
CALM = 5
"""Looks in a row that find the same."""


_UNMAPPED = {"KUIPER_CACHE": ""}
"""Mapped weights count as open files, also those of a model that was just replaced and is not dropped yet."""


@dataclass
class SoakReport:
    """What came of a soak.

    Attributes:
        seconds: how long the load was on, all rounds together.
        counts: what was seen.
        usages: what the server used at rest after each round.
    """

    seconds: float = 0.0
    counts: LoadCounts = field(default_factory=LoadCounts)
    usages: list[Usage] = field(default_factory=list)

    def summary(self) -> str:
        """Return it in words."""
        counts = self.counts
        total = counts.statuses.total()
        statuses = ", ".join(f"{status}: {count}" for status, count in sorted(counts.statuses.items()))
        lines = [
            f"{total} responses in {self.seconds:.0f} s of load ({total / self.seconds:.0f} a second), "
            f"{counts.unanswered} requests abandoned; by status {statuses}"
        ]
        for (name, version), endings in sorted(counts.endings.items()):
            successes = endings[CallStatus.SUCCESS,]
            lines.append(f"  {name} version {version}: {endings.total()} responses, {successes} successes")
        for number, usage in enumerate(self.usages):
            used = f"{usage.threads} threads, {usage.files} files, {usage.memory / 1e6:.1f} MB"
            lines.append(f"at rest after round {number}: {used}")
        lines.extend(f"FAULT: {fault}" for fault in counts.faults)
        lines.append(f"{counts.fault_count} faults")
        return "\n".join(lines)


def run_soak(
    folder: Path,
    seconds: float,
    rounds: int,
    seed: int = 0,
    flags: Sequence[str] = (),
    log: CheckpointLog | None = None,
) -> SoakReport:
    """Put a server under load, and return what was wrong.

    Args:
        folder: where its models are written to.
        seconds: of load; what warms the server up before is not counted.
        rounds: how many; at least two.
        seed: what is asked is drawn from it.
        flags: for the server, beside those that it gets anyway.
        log: where checkpoints go, between rounds; None for nowhere.
    """
    key_file = folder / "admin.keys"
    key_file.write_text(ADMIN_KEY)
    models = folder / "models"
    models.mkdir()
    general = ("--models", str(write_models(models)), "--workers", "2", "--threads", "1")
    control = ("--model-control", "explicit", "--admin-keys-file", str(key_file))
    others = ("--log-format", "json", "--max-body-bytes", "1000000", "--trace-rate", "10")
    report = SoakReport()
    with ServerProcess(
        *general, *control, *others, *flags, module="tests.soak.server", environment=_UNMAPPED
    ) as server:
        asyncio.run(_Soak(server, report, random.Random(seed), log).run(seconds, rounds))
        exit_code = server.exit_code()
    if exit_code:
        report.counts.blame(f"exit code {exit_code}")
    for line in server.lines:
        if '"level":"error"' in line or "Traceback" in line:
            report.counts.blame(f"log: {line[:2000]}")
    return report


class _Soak:
    def __init__(
        self, server: ServerProcess, report: SoakReport, chance: random.Random, log: CheckpointLog | None
    ) -> None:
        self._log = log
        self._server = server
        self._report = report
        self._chance = chance

    async def run(self, seconds: float, rounds: int) -> None:
        load = await self._prepare()
        await warm_up(load)
        await self._rest()  # nobody has left so far: the counters must be exact
        load.counts.kinds.clear()
        for _ in range(rounds):
            started = monotonic()
            await load.run(CLIENTS, seconds / rounds)
            self._report.seconds += monotonic() - started
            self._report.usages.append(await self._rest())
            await self._check_sizes()
            counts = self._report.counts
            if self._log is not None and self._log.is_due:
                self._log.write(self._server.process.pid, counts.statuses, counts.fault_count)
        self._check_usage()
        await self._drain(load)

    async def _prepare(self) -> Load:
        """Ask everything once, one by one, for the responses that hold from then on."""
        cases = [await self._ask_alone(case) for case in make_cases()]
        guests = [await self._ask_alone(case) for case in make_guest_cases()]
        visits = [await self._ask_alone(case) for case in make_visits()]
        hurried = make_hurried_cases()
        counts = self._report.counts
        sized = [await self._ask_alone(case) for case in make_sized_cases()]
        return Load(self._server.url, ADMIN_KEY, counts, self._chance, cases, guests, hurried, visits, sized)

    async def _ask_alone(self, case: LoadCase) -> LoadCase:
        connection = await SoakConnection.open(self._server.url)
        reply = await connection.ask(case.request)
        await connection.close()
        self._report.counts.saw(case, reply)
        return case.alone(reply)

    async def _rest(self) -> Usage:
        """Wait until the server has come to rest, and compare the counters; returns what it uses."""
        until = monotonic() + REST_SECONDS
        connection = await SoakConnection.open(self._server.url)
        seen: list[int] = []
        while True:
            reply = await connection.ask(METRICS.request)
            usage = usage_of(self._server.process.pid)
            is_busy = b"\nkuiper_workers_busy 0.0\n" not in reply.body
            seen = [] if is_busy else [*seen, usage.files][-CALM:]
            if (len(seen) == CALM and len(set(seen)) == 1) or monotonic() > until:
                break
            self._report.counts.saw(METRICS, reply)
            await asyncio.sleep(0.05)
        self._report.counts.reconcile(reply.body.decode(), RECONCILED)
        self._report.counts.saw(METRICS, reply)
        await connection.close()
        return usage

    async def _check_sizes(self) -> None:
        """Compare the rows of all runs with those that were warmed up: others were compiled under load."""
        connection = await SoakConnection.open(self._server.url)
        for (name, version), warm in RUN_SIZES.items():
            case = LoadCase("statistics", SoakRequest("GET", f"/v2/models/{name}/versions/{version}/stats"))
            reply = await connection.ask(case.request)
            self._report.counts.saw(case, reply)
            batches = orjson.loads(reply.body)["model_stats"][0]["batch_stats"]
            surplus = {batch["batch_size"] for batch in batches} - warm
            if surplus:
                self._report.counts.blame(f"{name} version {version}: ran on {sorted(surplus)} rows, cold")
        await connection.close()

    def _check_usage(self) -> None:
        first, *others = self._report.usages
        counts = self._report.counts
        for usage in others:
            if usage.threads > first.threads:
                counts.blame(f"{usage.threads} threads at rest, {first.threads} when it was warm")
            if usage.files > first.files:
                counts.blame(f"{usage.files} open files at rest, {first.files} when it was warm")
        memories = [usage.memory for usage in self._report.usages]
        slope = float(np.polyfit(range(len(memories)), memories, 1)[0])
        growth = slope * (len(memories) - 1)
        if growth > MAX_GROWTH:
            counts.blame(f"{growth / 1e6:.1f} MB more memory at rest than when it was warm")

    async def _drain(self, load: Load) -> None:
        """End the server while it answers: what it has accepted it answers, and then it ends."""
        slow = load.named("slow")
        connections = [await SoakConnection.open(load.url) for _ in range(4)]
        for connection, case in zip(connections, slow, strict=False):
            await connection.send(case.request.head() + case.request.wire_body())
        await self._wait_for_work()
        self._server.terminate()
        for connection, case in zip(connections, slow, strict=False):
            load.counts.saw(case, await connection.receive())
            await connection.close()

    async def _wait_for_work(self) -> None:
        """Return when the last request that was sent has come to its queue."""
        connection = await SoakConnection.open(self._server.url)
        request = SoakRequest("GET", "/v2/models/slow/stats")
        for _ in range(2):  # whatever came before has been read when the second response is there
            orjson.loads((await connection.ask(request)).body)
        await connection.close()
