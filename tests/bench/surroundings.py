"""The processor time of HAProxy for a request, and of a server for a scrape of its metrics.

Run: python -m tests.bench.surroundings [--seconds N] [--save]; needs the wrk program and the `dev` extra.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from pydantic import TypeAdapter

from tests.bench.machine import machine
from tests.bench.service.candidates import kuiper_command
from tests.bench.service.load import WARM_UP_SECONDS, LoadError, measure
from tests.bench.service.request import PostRequest
from tests.bench.service.server import ROOT, MeasuredServer, free_port
from tests.deploy.balanced import Balancer

SAVED = Path("docs/bench/surroundings.json")
SCRAPES = 50
CONNECTIONS = 16
LARGE_BUFFER_BYTES = (1 << 20) + (16 << 10)
"""An HAProxy buffer that fits a body of 1 MiB."""
INPUT_BYTES = np.zeros((1, 1, 28, 28), np.float32).tobytes()
"""The body of a request for `digits`."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Measured processor time.

    Attributes:
        machine: processor, cores and versions.
        balancer_seconds: of HAProxy, for a request for `digits`.
        large_balancer_seconds: the same with buffers for bodies of 1 MiB.
        scrape_bytes: size of a response of /metrics.
        scrape_seconds: of the server, for that response.
    """

    machine: Mapping[str, str]
    balancer_seconds: float
    large_balancer_seconds: float
    scrape_bytes: int
    scrape_seconds: float


_FORMAT = TypeAdapter(Surroundings)


def from_json(text: str) -> Surroundings:
    """Return what `main` saved."""
    return _FORMAT.validate_json(text)


def sentence(found: Surroundings) -> str:
    """Return the figures as text."""
    return (
        f"HAProxy takes {found.balancer_seconds * 1e6:.0f} µs of a core per request of `digits`, and "
        f"{found.large_balancer_seconds * 1e6:.0f} µs with buffers for bodies of 1 MiB. "
        f"A scrape of `/metrics` returns {found.scrape_bytes / 1e3:.0f} kB and takes "
        f"{found.scrape_seconds * 1e3:.1f} ms of a core."
    )


def run(seconds: int) -> Surroundings:
    """Measure scrapes of a server, and HAProxy in front of a server that does nothing."""
    port = free_port()
    with MeasuredServer(kuiper_command(ROOT / "models" / "digits", port, 1), port, "/readyz") as server:
        size, before = 0, server.cpu_seconds()
        for _ in range(SCRAPES):
            with urlopen(f"{server.url}/metrics") as response:
                size = len(response.read())
        scrape = (server.cpu_seconds() - before) / SCRAPES
    large = {"BUFFER_BYTES": str(LARGE_BUFFER_BYTES)}
    versions = machine(("uvicorn",))
    return Surroundings(
        versions, _balancer_seconds(seconds, {}), _balancer_seconds(seconds, large), size, scrape
    )


def _balancer_seconds(seconds: int, variables: Mapping[str, str]) -> float:
    port = free_port()
    request = PostRequest("/infer", INPUT_BYTES, {}).to_bytes()
    command = [sys.executable, "-m", "tests.bench.service.echo", str(port)]
    with MeasuredServer(command, port, "/"), Balancer([f"127.0.0.1:{port}"] * 2, variables) as balancer:
        url = f"http://127.0.0.1:{balancer.port}"
        measure(url, request, CONNECTIONS, 1)
        before = balancer.cpu_seconds()
        timings = measure(url, request, CONNECTIONS, seconds)
        # the generator warms up first, at the same rate
        return (balancer.cpu_seconds() - before) / (timings.per_second * (seconds + WARM_UP_SECONDS))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3, help="duration of each load")
    parser.add_argument("--save", action="store_true", help=f"write {SAVED}")
    arguments = parser.parse_args()
    found = run(arguments.seconds)
    print(sentence(found))
    if arguments.save:
        SAVED.write_text(_FORMAT.dump_json(found, indent=1).decode() + "\n")


if __name__ == "__main__":
    try:
        main()
    except LoadError as error:
        sys.exit(str(error))
