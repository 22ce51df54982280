"""Honest clients that go on asking during an attack, in a process of their own: one for a model, one for /livez."""

import contextlib
import http.client
import io
import multiprocessing
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Self

import numpy as np

PAUSE_SECONDS = 0.02
"""Time between a response and the next question."""
PERIOD_SECONDS = 20.0
"""Time after which a question counts as unanswered."""
START_SECONDS = 120.0
"""Time for the process of the honest clients to start or to end."""
PICTURE = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)


@dataclass
class Observation:
    """What one honest client noticed.

    Attributes:
        seconds: of each response with status 200, and of each question that was not answered.
        replies: by status, "none" where there was no response.
    """

    seconds: list[float] = field(default_factory=list)
    replies: Counter[str] = field(default_factory=Counter)

    @property
    def refused(self) -> int:
        """Number of questions that got another response than 200, or none."""
        return self.replies.total() - self.replies["200"]

    def percentile(self, percent: float) -> float:
        """Return a percentile of the times, in seconds; nan where there are none."""
        return float(np.percentile(self.seconds, percent)) if self.seconds else float("nan")


class HonestClient:
    """Asks one thing again and again.

    Args:
        port: of the server, on 127.0.0.1.
        target: path and query.
        body: what to post; None: GET.
        keeps: whether it asks on one connection as long as that is open, and not on a new one each time.
    """

    def __init__(self, port: int, target: str, body: bytes | None = None, *, keeps: bool) -> None:
        self._port, self._target, self._body, self._keeps = port, target, body, keeps
        self._connection: http.client.HTTPConnection | None = None

    def ask(self) -> tuple[int, bytes]:
        """Return status and body of a response; status 0 where there was none.

        A kept connection that the server has closed meanwhile is no failure: it is asked again, as HTTP clients do.
        """
        was_open = self._connection is not None
        status, body = self._ask()
        return self._ask() if was_open and not status else (status, body)

    def _ask(self) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PERIOD_SECONDS)
        try:
            headers = {} if self._body is None else {"Content-Type": "application/octet-stream"}
            self._connection.request(
                "GET" if self._body is None else "POST", self._target, self._body, headers
            )
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return 0, b""

    def close(self) -> None:
        """Leave."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def observe(self, observation: Observation) -> None:
        """Ask once, and note what came of it."""
        started = time.perf_counter()
        status, _ = self.ask()
        if status in (0, 200):
            observation.seconds.append(time.perf_counter() - started)
        if not self._keeps:
            self.close()
        observation.replies[str(status) if status else "none"] += 1


def ask_once(client: HonestClient) -> tuple[int, bytes]:
    """Return status and body of one response, asked for on a new connection."""
    with contextlib.closing(client):
        return client.ask()


def prober(port: int) -> HonestClient:
    """Return a client that asks whether the server lives."""
    return HonestClient(port, "/livez", keeps=False)


def customer(port: int) -> HonestClient:
    """Return a client that has a digit recognised."""
    body = io.BytesIO()
    np.save(body, PICTURE)
    return HonestClient(port, "/infer?model=digits&trace=off", body.getvalue(), keeps=True)


class Witnesses:
    """A prober and a customer, who ask from the moment of entering until `observations`."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._ends, self._may_end = context.Pipe(duplex=False), context.Event()
        self._started = context.Event()
        arguments = (port, self._ends[1], self._started, self._may_end)
        self._process = context.Process(target=_ask_on, args=arguments)

    def __enter__(self) -> Self:
        self._process.start()
        if not self._started.wait(START_SECONDS):
            raise TimeoutError("the honest clients do not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._may_end.set()
        self._process.join(START_SECONDS)
        if self._process.is_alive():
            self._process.kill()

    def observations(self) -> tuple[Observation, Observation]:
        """End, and return what the prober and the customer noticed."""
        self._may_end.set()
        if not self._ends[0].poll(START_SECONDS):
            raise TimeoutError("the honest clients do not come to an end")
        prober_saw, customer_saw = self._ends[0].recv()
        return prober_saw, customer_saw


def _ask_on(port: int, results: Connection, started: Event, may_end: Event) -> None:
    observations = Observation(), Observation()

    def ask(client: HonestClient, observation: Observation) -> None:
        while not may_end.is_set():
            client.observe(observation)
            time.sleep(PAUSE_SECONDS)
        client.close()

    pairs = zip((prober(port), customer(port)), observations, strict=True)
    threads = [threading.Thread(target=ask, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    started.set()
    for thread in threads:
        thread.join()
    results.send(observations)
