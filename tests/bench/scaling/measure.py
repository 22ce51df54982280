"""What a request takes of servers of one and of two processes, and what surrounds them takes."""

import math
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from engine import RuntimeGraph, TraceLevel
from tests.bench.scaling.fitting import BUSY, FITTED, ThreadTimes
from tests.bench.scaling.simulation import Outcome
from tests.bench.service.candidates import binary_request, kuiper_command
from tests.bench.service.load import measure
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer, free_port, main_thread_seconds

CONNECTIONS = {1: (1, FITTED, BUSY), 2: (1, FITTED, BUSY)}
"""Number of processes -> requests at once that are measured."""
RUN_SECONDS = 2.0
"""How long bare runs of a model are measured."""
MOST_SPREAD = 0.5
"""More is that of a machine that does other things as well."""
_P99 = 2.326
"""Standard deviations above the mean that one of a hundred draws of a normal distribution exceeds."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that was measured.

    Attributes:
        outcome: what clients saw.
        server_seconds: of the processor, for each request.
        client_seconds: the same of the load generator.
        loop_seconds: the same of the server's main thread, which is the event loop's where there is one process.
    """

    outcome: Outcome
    server_seconds: float
    client_seconds: float
    loop_seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a model.

    Attributes:
        loads: the median round of each load, by processes and connections.
        times: what a request takes of each thread.
        spread: standard deviation of the logarithm of a request's time.
        memory_bytes: of a server of two processes after the load, pages that they share counted once.
        model_bytes: of the model's files.
        cold_seconds: from the start of a server to its readiness, nothing compiled before.
        warm_seconds: the same where the compiled code was at hand.
    """

    loads: Mapping[tuple[int, int], Load]
    times: ThreadTimes
    spread: float
    memory_bytes: int
    model_bytes: int
    cold_seconds: float
    warm_seconds: float


def put_under_load(server: MeasuredServer, request: bytes, connections: int, seconds: int) -> Load:
    """Put a server under a load."""
    before = _counters(server)
    found = measure(server.url, request, connections, seconds)
    used = [after - first for after, first in zip(_counters(server), before, strict=True)]
    answered, *taken = used
    outcome = Outcome(found.per_second, found.p50, found.p99)
    server_cpu, client_cpu, loop_cpu = (one / answered for one in taken)
    return Load(outcome, server_cpu, client_cpu, loop_cpu)


def _counters(server: MeasuredServer) -> tuple[float, float, float, float]:
    """Return answered requests, and seconds of the processor of the server, the load generator and the main thread."""
    answered = sum(_samples(server.url, "nv_inference_request_success"))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = children.ru_utime + children.ru_stime
    return answered, server.cpu_seconds(), client, main_thread_seconds(server.pid)


def _samples(url: str, name: str) -> list[float]:
    """Return the values of a server's samples of a name."""
    with urlopen(f"{url}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return [sample.value for family in families for sample in family.samples if sample.name == name]


@contextmanager
def serving(model: ServedModel, processes: int, workers: int, cache: Path) -> Iterator[MeasuredServer]:
    """Serve a model, with so many workers in each process, and compiled code kept in a folder."""
    port = free_port()
    command = kuiper_command(model.folder / model.name, port, workers)
    command += ["--trace-rate", "0", "--processes", str(processes)]
    with MeasuredServer(command, port, "/readyz", {"KUIPER_CACHE": str(cache)}, processes) as server:
        yield server


def measure_model(model: ServedModel, cores: int, rounds: int, seconds: int) -> Measured:
    """Put servers of one and of two processes under each load, in turns, and return the median rounds."""
    described = {"name": "0", "shape": model.array.shape, "datatype": "FP32"}
    request = binary_request(f"/v2/models/{model.name}/infer", described, model.array).to_bytes()
    found: dict[tuple[int, int], list[Load]] = {}
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "code"
        with serving(model, 1, cores, cache) as server:
            cold = server.ready_seconds
        for _ in range(rounds):
            for processes, numbers in CONNECTIONS.items():
                with serving(model, processes, max(cores // processes, 1), cache) as server:
                    warm = server.ready_seconds
                    for connections in numbers:
                        load = put_under_load(server, request, connections, seconds)
                        found.setdefault((processes, connections), []).append(load)
                        print(
                            f"{model.name}, {processes} processes, {connections} at once: {load}", flush=True
                        )
                    memory = server.memory()
    folder = model.folder / model.name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.suffix in (".bin", ".param"))
    loads = {load: middle(rounds_of) for load, rounds_of in found.items()}
    busy = loads[1, BUSY]
    others = busy.server_seconds - busy.loop_seconds
    times = ThreadTimes(busy.loop_seconds, others, busy.client_seconds, _run_seconds(model))
    return Measured(loads, times, spread_of(found[1, 1]), memory, size, cold, warm)


def _run_seconds(model: ServedModel) -> float:
    """Return the seconds that the layers of a run of the model take: native code, without the interpreter's lock."""
    folder = model.folder / model.name
    (param,) = folder.glob("*.param")
    (weights,) = folder.glob("*.bin")
    graph = RuntimeGraph(param, weights)
    graph.build()
    started = time.perf_counter()
    times: list[float] = []
    while time.perf_counter() - started < RUN_SECONDS or len(times) < 3:
        trace = graph.run([model.array], trace=TraceLevel.ON).trace
        times.append(sum(layer.duration_us for layer in trace.layers) / 1e6 if trace else 0.0)
    return median(times[1:])


def spread_of(alone: Sequence[Load]) -> float:
    """Return how widely times are spread, of rounds with one client: of the round that was least disturbed."""
    least = min(math.log(max(load.outcome.p99 / load.outcome.p50, 1.0)) / _P99 for load in alone)
    return min(least, MOST_SPREAD)


def middle(rounds: Sequence[Load]) -> Load:
    """Return the round with the median rate."""
    return sorted(rounds, key=lambda load: load.outcome.per_second)[len(rounds) // 2]
