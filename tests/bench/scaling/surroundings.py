"""What a balancer and a scrape of the metrics take."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

from tests.bench.scaling.measure import serving
from tests.bench.scaling.results import Surroundings
from tests.bench.service.load import WARM_UP_SECONDS, measure
from tests.bench.service.request import PostRequest
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer, free_port
from tests.deploy.balanced import Balancer

SCRAPES = 50
CONNECTIONS = 16
LARGE_BYTES = (1 << 20) + (16 << 10)
"""A buffer of HAProxy that bodies of 1 MiB fit into."""


def measure_surroundings(model: ServedModel, seconds: int) -> Surroundings:
    """Measure HAProxy in front of a server that does nothing, and scrapes of one that serves a model."""
    with tempfile.TemporaryDirectory() as cache, serving(model, 1, 1, Path(cache) / "code") as server:
        size, before = 0, server.cpu_seconds()
        for _ in range(SCRAPES):
            with urlopen(f"{server.url}/metrics") as answer:
                size = len(answer.read())
        scrape = (server.cpu_seconds() - before) / SCRAPES
    large = {"BUFFER_BYTES": str(LARGE_BYTES)}
    return Surroundings(
        _balancer_seconds(model, seconds, {}), _balancer_seconds(model, seconds, large), size, scrape
    )


def _balancer_seconds(model: ServedModel, seconds: int, variables: Mapping[str, str]) -> float:
    port = free_port()
    request = PostRequest("/infer", model.array.tobytes(), {}).to_bytes()
    command = [sys.executable, "-m", "tests.bench.service.echo", str(port)]
    with MeasuredServer(command, port, "/"), Balancer([f"127.0.0.1:{port}"] * 2, variables) as balancer:
        url = f"http://127.0.0.1:{balancer.port}"
        measure(url, request, CONNECTIONS, 1)
        before = balancer.cpu_seconds()
        timings = measure(url, request, CONNECTIONS, seconds)
        # the generator warms up first, at the same rate
        return (balancer.cpu_seconds() - before) / (timings.per_second * (seconds + WARM_UP_SECONDS))
