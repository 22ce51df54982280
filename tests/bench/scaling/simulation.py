"""An event simulation of a server: requests wait for an interpreter, for a worker, and for a core.

A request takes the interpreter of its process (its head and body are read), then a worker, which runs the model
without the interpreter, then the interpreter again (its answer is written). Each of these also needs one of the
machine's cores, which is given up after a slice of time where others wait for it. What a request waits besides, for
threads to be woken and packets to travel, is a fixed time that takes nothing from others.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

SLICE_SECONDS = 1e-3
"""How long a request may keep a core that another one waits for; Linux preempts about so often."""
_WARM_UP = 0.1
"""Part of the requests, at the beginning, that is not counted."""

Draw = Callable[[random.Random, float], float]
"""Draws a time, in seconds, of a given mean."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request takes, in seconds.

    Attributes:
        interpreter: under the interpreter's lock.
        run: in a worker without that lock.
        fixed: waiting that takes nothing from others.
        client: of the load generator, which has a thread of its own on the same machine; 0 where it is elsewhere.
    """

    interpreter: float
    run: float
    fixed: float = 0.0
    client: float = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What serves.

    Attributes:
        processes: servers side by side, each with an interpreter; a request goes to any of them.
        workers: of each process.
        cores: of the machine.
    """

    processes: int
    workers: int
    cores: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes:
        per_second: answers per second.
        p50: median of the milliseconds from request to answer.
        p99: the 99th percentile.
    """

    per_second: float
    p50: float
    p99: float


def lognormal(spread: float) -> Draw:
    """Return how to draw times whose logarithm has a standard deviation of `spread`; 0: always the mean."""
    return lambda source, mean: mean * math.exp(source.gauss(-spread * spread / 2, spread))


def exponential(source: random.Random, mean: float) -> float:
    """Draw a time of an exponential distribution."""
    return source.expovariate(1 / mean) if mean else 0.0


def simulate_closed(
    demand: Demand, machine: Machine, connections: int, requests: int, draw: Draw, seed: int = 0
) -> Outcome:
    """Simulate clients of which each sends its next request when it has its answer."""
    return _Simulation(demand, machine, draw, seed).run_closed(connections, requests)


def simulate_open(
    demand: Demand, machine: Machine, rate: float, requests: int, draw: Draw, seed: int = 0
) -> Outcome:
    """Simulate requests that arrive at random, `rate` of them per second, whatever waits already."""
    return _Simulation(demand, machine, draw, seed).run_open(rate, requests)


@dataclass(slots=True, eq=False)
class _Resource:
    """Places that requests hold, and who waits for one."""

    free: int
    waiting: deque["_Request"] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Request:
    """A request on its way.

    Attributes:
        began: when it was sent.
        stages: those that are left, last first: a resource, None where only time passes, and seconds.
        left: seconds of the present stage that it has not had yet.
    """

    began: float
    stages: list[tuple[_Resource | None, float]]
    left: float = 0.0


class _Simulation:
    def __init__(self, demand: Demand, machine: Machine, draw: Draw, seed: int) -> None:
        self._demand, self._draw, self._random = demand, draw, random.Random(seed)
        self._cores = _Resource(machine.cores)
        self._client = _Resource(1)
        self._interpreters = [_Resource(1) for _ in range(machine.processes)]
        self._workers = [_Resource(machine.workers) for _ in range(machine.processes)]
        self._now, self._count = 0.0, 0
        self._events: list[tuple[float, int, _Request]] = []
        self._times: list[float] = []
        self._ends: list[float] = []

    def run_closed(self, connections: int, requests: int) -> Outcome:
        for index in range(connections):
            self._begin(index)
        while len(self._times) < requests:
            if self._step() is not None:
                self._begin(self._random.randrange(len(self._interpreters)))
        return self._outcome()

    def run_open(self, rate: float, requests: int) -> Outcome:
        arrival, begun = self._random.expovariate(rate), 0
        while len(self._times) < requests:
            if begun < requests and (not self._events or arrival <= self._events[0][0]):
                self._now, begun = arrival, begun + 1
                self._begin(self._random.randrange(len(self._interpreters)))
                arrival += self._random.expovariate(rate)
            else:
                self._step()
        return self._outcome()

    def _begin(self, process: int) -> None:
        process %= len(self._interpreters)
        half = self._draw(self._random, self._demand.interpreter) / 2
        stages: list[tuple[_Resource | None, float]] = [
            (self._interpreters[process], half),
            (self._workers[process], self._draw(self._random, self._demand.run)),
            (self._interpreters[process], half),
            (None, self._demand.fixed),
            (self._client, self._demand.client),
        ]
        # what takes no time needs no core
        self._advance(_Request(self._now, [stage for stage in stages if stage[1] > 0]))

    def _step(self) -> _Request | None:
        """Go to the next event; returns the request that is answered by it, if one is."""
        self._now, _, request = heapq.heappop(self._events)
        resource = request.stages[-1][0]
        if resource is not None:
            self._give_back(self._cores, self._take_slice)
            if request.left > 0:
                self._take(self._cores, request, self._take_slice)
                return None
            self._give_back(resource, self._take_core)
        request.stages.pop()
        return self._advance(request)

    def _advance(self, request: _Request) -> _Request | None:
        if not request.stages:
            self._times.append(self._now - request.began)
            self._ends.append(self._now)
            return request
        resource, seconds = request.stages[-1]
        request.left = seconds
        if resource is None:
            self._push(seconds, request)
        else:
            self._take(resource, request, self._take_core)
        return None

    def _take(self, resource: _Resource, request: _Request, go_on: Callable[[_Request], None]) -> None:
        if resource.free:
            resource.free -= 1
            go_on(request)
        else:
            resource.waiting.append(request)

    def _give_back(self, resource: _Resource, go_on: Callable[[_Request], None]) -> None:
        if resource.waiting:
            go_on(resource.waiting.popleft())
        else:
            resource.free += 1

    def _take_core(self, request: _Request) -> None:
        self._take(self._cores, request, self._take_slice)

    def _take_slice(self, request: _Request) -> None:
        seconds = min(request.left, SLICE_SECONDS)
        request.left -= seconds
        self._push(seconds, request)

    def _push(self, seconds: float, request: _Request) -> None:
        self._count += 1
        heapq.heappush(self._events, (self._now + seconds, self._count, request))

    def _outcome(self) -> Outcome:
        skipped = int(len(self._times) * _WARM_UP)
        times, ends = sorted(self._times[skipped:]), self._ends[skipped:]
        elapsed = ends[-1] - ends[0]
        return Outcome(
            (len(ends) - 1) / elapsed, times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3
        )
