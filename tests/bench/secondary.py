"""What is measured besides times of models: the cost of a trace, throughput, and where a build's time goes."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter

from threadpoolctl import threadpool_limits

from engine import RuntimeGraph, TraceLevel
from tests.bench.loaded import timed_calls
from tests.bench.models import ModelFiles
from tests.bench.peers import Call
from tests.bench.results import StartupPhases, Throughput, TraceCost
from tests.bench.runtimes import BASE, RUNTIMES
from tests.bench.worker import Worker

WINDOWS, WINDOW_SECONDS = 7, 1.0
IMPORTS = 5


def trace_cost(files: ModelFiles, threads: int, rounds: int) -> TraceCost:
    """Return what a run takes without and with trace, sample by sample; runs in a process of its own."""
    threadpool_limits(threads)
    graph = RuntimeGraph(files.param, backend="native", threads=threads)
    graph.build()
    image = files.model.input()
    levels = [TraceLevel.OFF, TraceLevel.ON]
    times: dict[TraceLevel, list[float]] = {level: [] for level in levels}
    for _ in range(rounds):
        levels.reverse()  # neither always follows the other
        for level in levels:
            times[level].append(median(timed_calls(partial(graph.run, [image], trace=level))))
    return TraceCost(files.model.name, threads, median(times[TraceLevel.OFF]), median(times[TraceLevel.ON]))


def throughput(files: ModelFiles) -> Throughput:
    """Return the requests per second of two threads over one graph and over two sessions, interleaved by the second."""
    with Worker(_one_graph, files) as native, Worker(_two_sessions, files) as base:
        rates: dict[Worker, list[float]] = {native: [], base: []}
        for _ in range(WINDOWS):
            for worker, found in rates.items():
                found.append(worker.ask(_requests_per_second, WINDOW_SECONDS))
    return Throughput(files.model.name, median(rates[native]), median(rates[base]))


def split(files: ModelFiles) -> StartupPhases:
    """Return where the time until the first response goes; runs in a process of its own, and keeps no compiled code."""
    os.environ["KUIPER_CACHE"] = ""
    graph = RuntimeGraph(files.param, backend="native")
    image = files.model.input()
    importing = _seconds(lambda: importlib.import_module("engine.compiler.program.native"))
    reading = _seconds(graph.init)
    binding = _seconds(graph.build)
    first = _seconds(lambda: graph.forward([image]))
    running = median(_seconds(lambda: graph.forward([image])) for _ in range(5))
    return StartupPhases(files.model.name, importing, reading, binding, first - running, running)


def import_seconds() -> float:
    """Return what importing the engine takes in a new process, numpy included: the median of some."""
    text = "from time import perf_counter as now; t = now(); import engine; print(now() - t)"
    command = [sys.executable, "-c", text]
    runs = [subprocess.run(command, capture_output=True, check=True, text=True) for _ in range(IMPORTS)]
    return median(float(run.stdout) for run in runs)


def _seconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


def _one_graph(files: ModelFiles) -> list[Call]:
    return [RUNTIMES["native"].prepare(files, 1)] * 2


def _two_sessions(files: ModelFiles) -> list[Call]:
    return [RUNTIMES[BASE].prepare(files, 1) for _ in range(2)]


def _requests_per_second(calls: Sequence[Call], seconds: float) -> float:
    for call in calls:
        call()
    started = perf_counter()

    def work(call: Call) -> int:
        done = 0
        while perf_counter() - started < seconds:
            call()
            done += 1
        return done

    with ThreadPoolExecutor(len(calls)) as pool:
        done = sum(pool.map(work, calls))
    return done / (perf_counter() - started)
