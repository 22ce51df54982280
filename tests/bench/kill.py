"""How long clients wait while one of two processes is killed and replaced: `python -m tests.bench.kill [--rounds N]`.

Each round starts a server of two processes with a model that takes no time, and clients that ask without a pause. Their
longest request is printed twice: while nothing else happens, and from the kill until another process serves instead.
A client whose connection was to the killed process connects again, and is counted; any other is to lose nothing.
"""

import argparse
import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from tests.service.models import VECTOR, add_model
from tests.service.processes.load import Load
from tests.service.server.process import ServerProcess

SERVES = re.compile(r"process (\d) serves")


@dataclass(frozen=True, slots=True)
class Round:
    """What clients saw in one round.

    Attributes:
        quiet: seconds of the longest request while nothing happens.
        killed: the same from the kill until another process serves.
        seconds: how long that took.
        statuses: how many responses there were of each status.
        broken: connections that ended, of each client.
    """

    quiet: float
    killed: float
    seconds: float
    statuses: Counter[int]
    broken: tuple[int, ...]


def measure_round(models: Path, clients: int, responses: int) -> Round:
    """Kill a process under load."""
    flags = ("--models", str(models), "--processes", "2", "--trace-rate", "0")
    with ServerProcess(*flags) as server, Load(server.url, clients=clients) as load:
        load.until_answered(responses)
        quiet = take_longest(load)
        parent = server.process.pid
        victim, *_ = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        began = monotonic()
        os.kill(int(victim), signal.SIGKILL)
        server.wait_for_line(SERVES)
        seconds = monotonic() - began
        load.until_answered(responses)
        killed = take_longest(load)
    return Round(
        quiet, killed, seconds, load.responses, tuple(len(reported.broken) for reported in load.reports)
    )


def take_longest(load: Load) -> float:
    """Return the seconds of the longest request so far, and forget it."""
    longest = max(reported.longest for reported in load.reports)
    for reported in load.reports:
        reported.longest = 0.0
    return longest


def report(rounds: Sequence[Round]) -> str:
    """Return what was measured, a line each."""
    quiet, killed = ([getattr(one, name) * 1e3 for one in rounds] for name in ("quiet", "killed"))
    statuses = sum((one.statuses for one in rounds), Counter[int]())
    return (
        f"longest request: {median(quiet):.0f} ms at rest, {median(killed):.0f} ms around a kill "
        f"(medians of {len(rounds)}; at most {max(quiet):.0f} and {max(killed):.0f})\n"
        f"another process serves after {median(one.seconds for one in rounds):.2f} s\n"
        f"responses by status: {dict(statuses)}; connections that ended: "
        f"{max(map(sum, (one.broken for one in rounds)))} of {len(rounds[0].broken)} at most, "
        f"{max(max(one.broken) for one in rounds)} of one client at most"
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--responses", type=int, default=500, help="of each client before and after")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = add_model(Path(folder), "vector", VECTOR)
        print(report([measure_round(models, given.clients, given.responses) for _ in range(given.rounds)]))


if __name__ == "__main__":
    main()
