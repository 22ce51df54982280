"""An event simulation of a server: threads wait for the lock of their process, for being woken, and for a core.

One thread of a process, the event loop, reads requests and writes answers; its workers run the model. All of them hold
the interpreter's lock while they run Python, one at a time, and none holds it while a worker runs native code. To wake
a thread takes a while, the hand-over: a thread that had nothing to do is woken, and so is one that waited for the lock,
which nobody holds meanwhile. The event loop keeps the lock while it has anything to do, as it gives it up only for
system calls that are shorter than a hand-over; a worker keeps it from one request to the next one. The more requests
are at hand, the fewer hand-overs does each of them take.

Python and native code also need one of the machine's cores, which is given up after a slice of time where others wait.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

SLICE_SECONDS = 1e-3
"""How long a thread may keep a core that another one waits for; Linux preempts about so often."""
_WARM_UP = 0.1
"""Part of the requests, at the beginning, that is not counted."""

Draw = Callable[[random.Random, float], float]
"""Draws a time, in seconds, of a given mean."""
_Action = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request takes, in seconds.

    Attributes:
        loop: of the event loop, under the interpreter's lock.
        worker: of a worker, under that lock.
        run: of a worker, without that lock.
        handover: until a thread runs that something is handed to, the load generator's as well; it takes no core.
        wake: of that thread for each hand-over, under the interpreter's lock: to look for what there is to do.
        client: of the load generator, which has a thread of its own on the same machine; 0 where it is elsewhere.
    """

    loop: float
    worker: float
    run: float
    handover: float = 0.0
    wake: float = 0.0
    client: float = 0.0

    @property
    def locked(self) -> float:
        """Seconds under the interpreter's lock."""
        return self.loop + self.worker

    @property
    def server(self) -> float:
        """Seconds of a core that the server takes, hand-overs not counted."""
        return self.locked + self.run


@dataclass(frozen=True, slots=True)
class Machine:
    """What serves.

    Attributes:
        processes: servers side by side, each with an interpreter.
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
        handovers: for each request; 0 where they were not counted.
    """

    per_second: float
    p50: float
    p99: float
    handovers: float = 0.0


def lognormal(spread: float) -> Draw:
    """Return how to draw times whose logarithm has a standard deviation of `spread`; 0: always the mean."""
    return lambda source, mean: mean * math.exp(source.gauss(-spread * spread / 2, spread))


def exponential(source: random.Random, mean: float) -> float:
    """Draw a time of an exponential distribution."""
    return source.expovariate(1 / mean) if mean else 0.0


def simulate_closed(
    demand: Demand, machine: Machine, connections: int, requests: int, draw: Draw, seed: int = 0
) -> Outcome:
    """Simulate clients of which each sends its next request when it has its answer, to the same process."""
    return _Simulation(demand, machine, draw, seed).run_closed(connections, requests)


def simulate_open(
    demand: Demand, machine: Machine, rate: float, requests: int, draw: Draw, seed: int = 0
) -> Outcome:
    """Simulate requests that arrive at random, `rate` of them per second, at any process, whatever waits already."""
    return _Simulation(demand, machine, draw, seed).run_open(rate, requests)


class _Clock:
    """What happens when."""

    def __init__(self) -> None:
        self.now, self._count = 0.0, 0
        self._events: list[tuple[float, int, _Action]] = []

    def after(self, seconds: float, action: _Action) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, action))

    def step(self) -> None:
        self.now, _, action = heapq.heappop(self._events)
        action()


class _Cores:
    """The machine's cores."""

    def __init__(self, clock: _Clock, count: int) -> None:
        self._clock, self._free = clock, count
        self._waiting: deque[tuple[float, _Action]] = deque()

    def use(self, seconds: float, then: _Action) -> None:
        if seconds <= 0:  # what takes no time needs no core
            self._clock.after(0.0, then)
        elif self._free:
            self._free -= 1
            self._run(seconds, then)
        else:
            self._waiting.append((seconds, then))

    def _run(self, seconds: float, then: _Action) -> None:
        now = min(seconds, SLICE_SECONDS)
        self._clock.after(now, partial(self._end_slice, seconds - now, then))

    def _end_slice(self, left: float, then: _Action) -> None:
        if left > 0:
            self._waiting.append((left, then))
        if self._waiting:
            self._run(*self._waiting.popleft())
        else:
            self._free += 1
        if left <= 0:
            then()


class _Lock:
    """An interpreter's lock: handed to the thread that has waited longest, which has to be woken."""

    def __init__(self, clock: _Clock, cores: _Cores, handover: float, wake: float) -> None:
        self._clock, self._cores, self._handover, self._wake = clock, cores, handover, wake
        self._waiting: deque[_Action] = deque()
        self._is_free = True
        self.handovers = 0

    def take(self, then: _Action) -> None:
        """Take the lock, for a thread that is awake."""
        if self._is_free:
            self._is_free = False
            then()
        else:
            self._waiting.append(then)

    def wake(self, then: _Action) -> None:
        """Wake a thread, and have it take the lock."""
        self.handovers += 1
        look = partial(self._cores.use, self._wake, then)
        self._clock.after(self._handover, partial(self.take, look))

    def release(self) -> None:
        """Give up the lock."""
        if self._waiting:
            self.handovers += 1
            look = partial(self._cores.use, self._wake, self._waiting.popleft())
            self._clock.after(self._handover, look)
        else:
            self._is_free = True


class _Thread:
    """A thread that does one thing after the other, and keeps a lock as long as it has anything to do."""

    def __init__(self, cores: _Cores, lock: _Lock) -> None:
        self._cores, self._lock = cores, lock
        self._jobs: deque[tuple[float, _Action]] = deque()
        self._is_asleep = True

    def do(self, seconds: float, then: _Action) -> None:
        self._jobs.append((seconds, then))
        if self._is_asleep:
            self._is_asleep = False
            self._lock.wake(self._work)

    def _work(self) -> None:
        seconds, then = self._jobs.popleft()
        self._cores.use(seconds, partial(self._end, then))

    def _end(self, then: _Action) -> None:
        then()
        if self._jobs:
            self._work()
        else:
            self._is_asleep = True
            self._lock.release()


class _Process:
    """A server: its event loop, and workers, which take requests in the order of their arrival."""

    def __init__(self, clock: _Clock, cores: _Cores, demand: Demand, workers: int) -> None:
        self._cores, self._idle = cores, workers
        self.lock = _Lock(clock, cores, demand.handover, demand.wake)
        self._loop = _Thread(cores, self.lock)
        self._queue: deque[_Action] = deque()

    def answer(self, times: tuple[float, float, float], then: _Action) -> None:
        """Answer a request that takes so many seconds of the loop, of a worker's Python, and of the run."""
        loop, worker, run = times
        answer = partial(self._loop.do, loop / 2, then)
        self._loop.do(loop / 2, partial(self._submit, partial(self._begin, worker / 2, run, answer)))

    def _submit(self, begin: _Action) -> None:
        if self._idle:
            self._idle -= 1
            self.lock.wake(begin)
        else:
            self._queue.append(begin)

    def _begin(self, worker: float, run: float, answer: _Action) -> None:
        self._cores.use(worker, partial(self._run, worker, run, answer))

    def _run(self, worker: float, run: float, answer: _Action) -> None:
        self.lock.release()
        end = partial(self._cores.use, worker, partial(self._end, answer))
        self._cores.use(run, partial(self.lock.take, end))

    def _end(self, answer: _Action) -> None:
        answer()
        if self._queue:
            self._queue.popleft()()
        else:
            self._idle += 1
            self.lock.release()


class _Simulation:
    def __init__(self, demand: Demand, machine: Machine, draw: Draw, seed: int) -> None:
        self._demand, self._draw, self._random = demand, draw, random.Random(seed)
        self._clock = _Clock()
        cores = _Cores(self._clock, machine.cores)
        self._client = _Thread(cores, _Lock(self._clock, cores, demand.handover, 0.0))
        self._processes = [
            _Process(self._clock, cores, demand, machine.workers) for _ in range(machine.processes)
        ]
        self._times: list[float] = []
        self._ends: list[float] = []

    def run_closed(self, connections: int, requests: int) -> Outcome:
        def send(connection: int) -> None:
            self._begin(self._processes[connection % len(self._processes)], partial(send, connection))

        for index in range(connections):
            send(index)
        return self._run(requests)

    def run_open(self, rate: float, requests: int) -> Outcome:
        def arrive() -> None:
            self._begin(self._random.choice(self._processes), lambda: None)
            self._clock.after(self._random.expovariate(rate), arrive)

        arrive()
        return self._run(requests)

    def _run(self, requests: int) -> Outcome:
        while len(self._times) < requests:
            self._clock.step()
        skipped = int(requests * _WARM_UP)
        times, ends = sorted(self._times[skipped:]), self._ends[skipped:]
        elapsed = ends[-1] - ends[0]
        return Outcome(
            (len(ends) - 1) / elapsed,
            times[len(times) // 2] * 1e3,
            times[int(len(times) * 0.99)] * 1e3,
            sum(process.lock.handovers for process in self._processes) / requests,
        )

    def _begin(self, process: _Process, then: _Action) -> None:
        demand = self._demand
        loop, worker, run = (
            self._draw(self._random, mean) for mean in (demand.loop, demand.worker, demand.run)
        )
        end = partial(self._end, self._clock.now, then)
        if demand.client:
            end = partial(self._client.do, demand.client, end)
        process.answer((loop, worker, run), end)

    def _end(self, began: float, then: _Action) -> None:
        self._times.append(self._clock.now - began)
        self._ends.append(self._clock.now)
        then()
