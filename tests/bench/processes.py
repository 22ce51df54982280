"""One process compared with several, on this machine: `python -m tests.bench.processes`; needs `wrk`.

Servers are measured alternately, each with the same clients. Besides requests a second it shows how even the work was
spread, what share of a request's time each saved, and how much memory belongs to each process alone.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx
import numpy as np

from tests.bench.service.candidates import binary_request
from tests.bench.service.load import LoadError, Timings, measure
from tests.bench.service.request import PostRequest
from tests.bench.service.server import MeasuredServer, free_port


@dataclass
class Measured:
    """What a server of so many processes did.

    Attributes:
        rounds: its timings, a round each.
        shares: the least busy process's share of the processor time of the busiest, a round each.
        private: bytes that belong to each process alone: first that which starts the others, where there are several.
        proportional: bytes of all together; pages that they share count once.
    """

    rounds: list[Timings] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    private: list[int] = field(default_factory=list)
    proportional: int = 0

    @property
    def per_second(self) -> float:
        """Requests a second, the median of the rounds."""
        return median(one.per_second for one in self.rounds)


def command_of(models: Path, port: int, processes: int) -> list[str]:
    """Return the command line of a server."""
    flags = {"--models": models, "--port": port, "--processes": processes, "--trace-rate": 0}
    reported = [str(part) for flag in flags.items() for part in flag]
    return [sys.executable, "-m", "service", "serve", "--log-level", "warning", *reported]


def request_for(url: str, model: str) -> PostRequest:
    """Return a request with one row of zeros for a model's only input, as binary tensor data."""
    described = httpx.get(f"{url}/v2/models/{model}").raise_for_status().json()["inputs"][0]
    shape = [max(1, size) for size in described["shape"]]
    head = {"name": described["name"], "shape": shape, "datatype": "FP32"}
    return binary_request(f"/v2/models/{model}/infer", head, np.zeros(shape, np.float32))


def processes_of(server: MeasuredServer) -> list[int]:
    """Return the process that was started, and those that it has started."""
    parent = server.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *map(int, children)]


def private_bytes(pid: int) -> int:
    """Return the bytes of memory that belong to a process alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(
        int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))
    )


def processor_ticks(pid: int) -> int:
    """Return the processor time that a process has used, in ticks of the system's clock."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def measure_round(
    models: Path, model: str, processes: int, connections: int, seconds: int, into: Measured
) -> None:
    """Start a server, put it under load, and keep what it did."""
    port = free_port()
    command = command_of(models, port, processes)
    with MeasuredServer(command, port, "/readyz", processes=processes) as server:
        request = request_for(server.url, model)
        request.send(server.url)
        _, *serving = pids = processes_of(server)
        serving = serving or pids
        before = [processor_ticks(pid) for pid in serving]
        into.rounds.append(measure(server.url, request.to_bytes(), connections, seconds))
        used = [processor_ticks(pid) - ticks for pid, ticks in zip(serving, before, strict=True)]
        into.shares.append(min(used) / max(used))
        into.private = [private_bytes(pid) for pid in pids]
        into.proportional = server.memory()


def report(found: dict[int, Measured]) -> str:
    """Return what was measured as a table, and the ratios."""
    lines = []
    for processes, one in found.items():
        private = ", ".join(f"{size / 2**20:.0f}" for size in one.private)
        last = one.rounds[-1]
        lines.append(
            f"{processes} process{'es' if processes > 1 else ''}: {one.per_second:.0f} requests/s "
            f"(median of {len(one.rounds)}), median {last.p50:.2f} ms, p99 {last.p99:.2f} ms, "
            f"{one.proportional / 2**20:.0f} MiB in all, private {private} MiB, "
            f"least busy {100 * median(one.shares):.0f} % of the busiest"
        )
    first, *others = found
    for processes in others:
        ratio = found[processes].per_second / found[first].per_second
        lines.append(f"{processes} processes answer {ratio:.2f} times as many requests as {first}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("models"))
    parser.add_argument("--model", default="digits")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    found = {processes: Measured() for processes in given.processes}
    try:
        for _ in range(given.rounds):
            for processes, one in found.items():
                measure_round(given.models, given.model, processes, given.connections, given.seconds, one)
    except LoadError as error:
        print(error, file=sys.stderr)
        return 1
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
