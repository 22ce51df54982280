"""Valid and hostile requests, mixed, as many as are asked for: no 500, no wrong response, nothing that grows.

Run: python -m tests.attack.mixed [--requests N] [--seed N]
"""

import argparse
import asyncio
import contextlib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TextIO
from urllib.parse import urlsplit

from tests.attack.hostile import Hostile, hostile
from tests.service.server.process import ServerProcess
from tests.soak.case import LoadCase
from tests.soak.cases import make_cases
from tests.soak.checkpoint import CheckpointLog, growth_of
from tests.soak.models import write_models
from tests.soak.soak import ADMIN_KEY
from tests.soak.wire import SoakConnection, SoakReply

CLIENTS = 8
"""Connections that valid and hostile requests take turns on."""
MODELS = ("digits", "vector", "pair", "twin", "lookup")
MAX_GROWTH = 24 << 20
"""Bytes that the server may grow by, once it has had a quarter of the requests."""
MAX_FAULTS = 20
PERIOD = 60.0
"""Seconds until a client that gets no response says so."""
_READ_BYTES = 1 << 16
_IS_ENTRY = re.compile(r"\d{4}-\d\d-\d\dT")
"""An entry of the log begins with its time; what follows it are the lines of a traceback."""
_ERROR_LENGTH = 4000
"""How much of an error is shown: the end, where the cause stands."""


@dataclass
class Mixture:
    """A run.

    Attributes:
        statuses: status -> responses.
        hostile: what was done -> how often.
        valid: requests whose responses were compared with what is expected.
        faults: what was wrong, in words, the first of them.
        fault_count: how much was wrong.
        left: requests that are still to be made.
    """

    left: int
    statuses: Counter[str] = field(default_factory=Counter)
    hostile: Counter[str] = field(default_factory=Counter)
    valid: int = 0
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0

    def blame(self, fault: str | None) -> None:
        """Note what was wrong, if anything was."""
        if fault is not None:
            self.fault_count += 1
            if len(self.faults) < MAX_FAULTS:
                self.faults.append(fault)
                print(
                    f"FAULT: {fault}", file=sys.stderr, flush=True
                )  # a long run may be ended before its summary

    def summary(self) -> str:
        """Return it in words."""
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(self.statuses.items()))
        kinds = ", ".join(f"{name}: {count:,}" for name, count in sorted(self.hostile.items()))
        total = self.valid + self.hostile.total()
        lines = [
            f"{total:,} requests: {self.valid:,} compared with what is expected, {total - self.valid:,} hostile",
            f"hostile: {kinds}",
            f"responses by status: {statuses}",
            *(f"FAULT: {fault}" for fault in self.faults),
            f"{self.fault_count} faults",
        ]
        return "\n".join(lines)


class _Client:
    """Makes requests one after the other."""

    def __init__(self, url: str, run: Mixture, cases: Sequence[LoadCase], chance: Random) -> None:
        self._url, self._run, self._cases, self._chance = url, run, cases, chance
        self._sound = [case.request for case in cases if case.request.body and case.status == 200]
        self._connection: SoakConnection | None = None

    async def ask_on(self) -> None:
        """Make requests until there are enough."""
        while self._run.left > 0:
            self._run.left -= 1
            try:
                async with asyncio.timeout(PERIOD):
                    await (self._ask_valid() if self._chance.random() < 0.5 else self._ask_hostile())
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                self._run.blame(f"{type(error).__name__}: {error}")
                await self._close()
        await self._close()

    async def _ask_valid(self) -> None:
        case = self._chance.choice(self._cases)
        reply = await self._ask(case.request.head() + case.request.wire_body())
        self._run.valid += 1
        self._run.statuses[str(reply.status)] += 1
        self._run.blame(case.fault(reply))

    async def _ask_hostile(self) -> None:
        attempt = hostile(self._chance, self._sound)
        self._run.hostile[attempt.name] += 1
        if attempt.ends:
            await self._send_to_end(attempt)
            return
        reply = await self._ask(attempt.data)
        self._run.statuses[str(reply.status)] += 1
        if reply.status == 500:
            self._run.blame(f"{attempt.name}: 500 {reply.body[:200]!r} to {attempt.data[:2000]!r}")

    async def _ask(self, data: bytes) -> SoakReply:
        """Return the response to a request on the connection that is kept.

        The server may have closed that meanwhile, as nothing was asked: then it is asked again, as HTTP clients do.
        """
        was_open = self._connection is not None
        try:
            return await self._ask_on(await self._open(), data)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            await self._close()
            if not was_open or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                raise
            return await self._ask_on(await self._open(), data)

    async def _ask_on(self, connection: SoakConnection, data: bytes) -> SoakReply:
        await connection.send(data)
        reply = await connection.receive()
        if not connection.is_open:
            await self._close()
        return reply

    async def _send_to_end(self, attempt: Hostile) -> None:
        """Send on a connection of its own, and read all that comes; the server may answer several times or never."""
        address = urlsplit(self._url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        read = b""
        try:
            writer.write(attempt.data)
            writer.write_eof()
            while piece := await reader.read(_READ_BYTES):
                read += piece
        except ConnectionError:
            pass  # it was closed before all was sent, which is a response as well
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        status = read[9:12].decode("latin-1") or "none"
        self._run.statuses[status] += 1
        if status == "500" or b"HTTP/1.1 500" in read or not (read.startswith(b"HTTP/1.1 ") or not read):
            self._run.blame(f"{attempt.name}: {read[:300]!r} to {attempt.data[:2000]!r}")

    async def _open(self) -> SoakConnection:
        if self._connection is None:
            self._connection = await SoakConnection.open(self._url)
        return self._connection

    async def _close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()


async def _alone(url: str) -> list[LoadCase]:
    """Return what is asked, with the responses that it gets when nothing else is asked."""
    connection = await SoakConnection.open(url)
    cases = []
    for case in make_cases():
        if case.model is None or case.model[0] in MODELS:
            reply = await connection.ask(case.request)
            cases.append(case.alone(reply))
            if not connection.is_open:
                await connection.close()
                connection = await SoakConnection.open(url)
    await connection.close()
    return cases


async def _mix(server: ServerProcess, run: Mixture, seed: int, log: CheckpointLog) -> None:
    cases = await _alone(server.url)
    clients = [_Client(server.url, run, cases, Random(f"{seed} {number}")) for number in range(CLIENTS)]
    asking = asyncio.gather(*(client.ask_on() for client in clients))
    while not asking.done():
        await asyncio.wait([asking], timeout=1.0)
        if log.is_due or asking.done():
            log.write(server.process.pid, run.statuses, run.fault_count)
    await asking
    for case in cases:  # what held alone before holds alone afterwards
        connection = await SoakConnection.open(server.url)
        run.blame(case.fault(await connection.ask(case.request)))
        await connection.close()


def mix(folder: Path, requests: int, seed: int, target: TextIO, every: float = 60.0) -> Mixture:
    """Make requests to a server of its own, and return what was wrong.

    Args:
        folder: where its models are written to.
        requests: how many.
        seed: what is asked is drawn from it.
        target: where checkpoints go.
        every: seconds from one checkpoint to the next.
    """
    models = folder / "models"
    models.mkdir()
    keys = folder / "admin.keys"
    keys.write_text(ADMIN_KEY)
    control = ("--model-control", "explicit", "--admin-keys-file", str(keys))
    flags = ("--models", str(write_models(models)), *control)
    limits = ("--max-body-bytes", "1000000", "--trace-rate", "10")
    run, log = Mixture(requests), CheckpointLog(target, every)
    with ServerProcess(*flags, *limits, module="tests.soak.server") as server:
        asyncio.run(_mix(server, run, seed, log))
        server.terminate()
        if code := server.exit_code():
            run.blame(f"exit code {code}")
    for error in errors_in(server.lines):
        run.blame(f"log: {error}")
    growth = growth_of(log.written)
    if growth > MAX_GROWTH:
        run.blame(f"{growth / 1e6:.1f} MB more memory than after a quarter of the requests")
    return run


def errors_in(lines: Sequence[str]) -> list[str]:
    """Return the errors of a log, each with the end of its traceback."""
    found: list[list[str]] = []
    is_in_error = False
    for line in lines:
        if " ERROR " in line:
            found.append([])
        if is_in_error := " ERROR " in line or (is_in_error and not _IS_ENTRY.match(line)):
            found[-1].append(line)
    return ["\n".join(error)[-_ERROR_LENGTH:] for error in found]


def main() -> int:
    """Make the requests and print what came of them; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="what is asked is drawn from it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run = mix(Path(name), arguments.requests, arguments.seed, sys.stdout)
    print(run.summary())
    return 1 if run.fault_count else 0


if __name__ == "__main__":
    sys.exit(main())
