"""What a request takes of servers of one and of two processes, and what surrounds them takes."""

import math
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from engine import RuntimeGraph
from tests.bench.scaling.results import Profile
from tests.bench.scaling.simulation import Demand, Outcome
from tests.bench.service.candidates import binary_request, kuiper_command
from tests.bench.service.load import measure
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import START_SECONDS, MeasuredServer, free_port

CONNECTIONS = {1: (1, 4, 16), 2: (1, 4, 16)}
"""Number of processes -> requests at once that are measured."""
RUN_SECONDS = 2.0
"""How long bare runs of a model are measured."""
_P99 = 2.326
"""Standard deviations above the mean that one of a hundred draws of a normal distribution exceeds."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that was measured.

    Attributes:
        outcome: what clients saw.
        server_seconds: of the processor, for each request.
        client_seconds: the same of the load generator.
    """

    outcome: Outcome
    server_seconds: float
    client_seconds: float


def put_under_load(server: MeasuredServer, request: bytes, connections: int, seconds: int) -> Load:
    """Put a server under a load."""
    before = _counters(server)
    found = measure(server.url, request, connections, seconds)
    used = [after - first for after, first in zip(_counters(server), before, strict=True)]
    answered, server_cpu, client_cpu = used
    outcome = Outcome(found.per_second, found.p50, found.p99)
    return Load(outcome, server_cpu / answered, client_cpu / answered)


def _counters(server: MeasuredServer) -> tuple[float, float, float]:
    """Return answered requests, and seconds of the processor of the server and of the load generator."""
    answered = sum(_samples(server.url, "nv_inference_request_success"))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answered, server.cpu_seconds(), children.ru_utime + children.ru_stime


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
    with MeasuredServer(command, port, "/readyz", {"KUIPER_CACHE": str(cache)}) as server:
        wait_for_processes(server.url, processes)
        yield server


def wait_for_processes(url: str, processes: int) -> None:
    """Wait until each process of a server is ready: it is so itself as soon as the first one is.

    Raises:
        TimeoutError: it takes longer than a server may take to start.
    """
    end = time.perf_counter() + START_SECONDS
    while len(_samples(url, "kuiper_workers")) < processes:
        if time.perf_counter() > end:
            raise TimeoutError(
                f"{url}: not all of {processes} processes were ready after {START_SECONDS:g} s"
            )
        time.sleep(0.05)


def measure_loads(
    model: ServedModel, cores: int, rounds: int, seconds: int
) -> tuple[Profile, dict[tuple[int, int], Load]]:
    """Return what a request takes, and each load's best round by processes and connections."""
    described = {"name": "0", "shape": model.array.shape, "datatype": "FP32"}
    request = binary_request(f"/v2/models/{model.name}/infer", described, model.array).to_bytes()
    best: dict[tuple[int, int], Load] = {}
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "code"
        with serving(model, 1, cores, cache) as server:
            cold = server.ready_seconds
        for _ in range(rounds):
            for processes, numbers in CONNECTIONS.items():
                with serving(model, processes, cores // processes, cache) as server:
                    warm = server.ready_seconds
                    put_under_load(server, request, 4, 1)
                    for connections in numbers:
                        found = put_under_load(server, request, connections, seconds)
                        print(
                            f"{model.name}, {processes} processes, {connections} at once: {found}", flush=True
                        )
                        if (last := best.get((processes, connections))) is None or (
                            found.outcome.per_second > last.outcome.per_second
                        ):
                            best[processes, connections] = found
                    memory = server.memory()
    folder = model.folder / model.name
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.suffix in (".bin", ".param"))
    alone, busy = best[1, 1], best[1, max(CONNECTIONS[1])]
    demand = demand_of(_run_seconds(model), alone, busy)
    spread = math.log(max(alone.outcome.p99 / alone.outcome.p50, 1.0)) / _P99
    return Profile(model.name, demand, spread, memory, size, cold, warm), best


def _run_seconds(model: ServedModel) -> float:
    """Return the seconds of the processor that a run of the model takes, on the thread that runs it."""
    folder = model.folder / model.name
    (param,) = folder.glob("*.param")
    (weights,) = folder.glob("*.bin")
    graph = RuntimeGraph(param, weights)
    graph.build()
    started = time.perf_counter()
    times: list[float] = []
    while time.perf_counter() - started < RUN_SECONDS or len(times) < 3:
        before = time.thread_time()
        graph.forward([model.array])
        times.append(time.thread_time() - before)
    return median(times[1:])


def demand_of(run_seconds: float, alone: Load, busy: Load) -> Demand:
    """Return what a request takes: from a bare run of the model, a load of one request at a time, and one of many.

    The processor's time is that of the busy server, which wakes its threads less often; what the run did not take of it
    is the interpreter's. The rest of the time that a client waits who is alone is fixed.
    """
    run = min(run_seconds, busy.server_seconds)
    interpreter = busy.server_seconds - run
    fixed = alone.outcome.p50 / 1e3 - run - interpreter - busy.client_seconds
    return Demand(interpreter, run, max(fixed, 0.0), busy.client_seconds)
