"""Load on a cluster: threads that ask over and over, each on a connection that it keeps, and what they get."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Self

import numpy as np

from engine.dtypes import Array

TIMEOUT_SECONDS = 150.0
"""A response that takes longer counts as a failure."""
BACK_OFF_SECONDS = 0.2
"""How long a client that failed waits: the sockets of a killed process close one after the other, the listening one
too, and who asks again at once may find it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request.

    Attributes:
        path: where it is sent.
        body: what is sent.
        headers: its headers.
    """

    path: str
    body: bytes
    headers: dict[str, str]


def digits_request(rows: int, path: str = "/v2/models/digits/infer") -> Ask:
    """Return a request to the digits for so many rows, 3136 bytes for each; its response is binary as well."""
    return binary_request(np.random.default_rng(rows).random((rows, 1, 28, 28), dtype=np.float32), path)


def binary_request(values: Array, path: str = "/v2/models/digits/infer") -> Ask:
    """Return a request to the digits for pictures, (N, 1, 28, 28) in float32."""
    data = {"binary_data_size": values.nbytes}
    inputs = {"name": "0", "shape": values.shape, "datatype": "FP32", "parameters": data}
    outputs = {"name": "31", "parameters": {"binary_data": True}}
    head = json.dumps({"inputs": [inputs], "outputs": [outputs]}).encode()
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(len(head)),
    }
    return Ask(path, head + values.tobytes(), headers)


@dataclass
class Load:
    """What was asked and answered.

    Attributes:
        answered: requests with the response that all of them have to get.
        failures: what happened to each of the others.
    """

    answered: int = 0
    failures: list[str] = field(default_factory=list)
    _more: threading.Condition = field(default_factory=threading.Condition)

    def note(self, failure: str | None) -> None:
        """Count a request; None for one that was answered."""
        with self._more:
            if failure is None:
                self.answered += 1
            else:
                self.failures.append(failure)
            self._more.notify_all()

    def wait_for(self, count: int) -> Self:
        """Wait until so many more requests have been answered."""
        with self._more:
            goal = self.answered + count
            if not self._more.wait_for(lambda: self.answered >= goal, TIMEOUT_SECONDS):
                raise TimeoutError(
                    f"{self.answered} of {goal} responses came, and failures: {self.failures[:5]}"
                )
        return self


def ask(port: int, request: Ask) -> tuple[int, bytes]:
    """Send one request on a connection of its own; returns status and body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        return _exchange(connection, request)
    finally:
        connection.close()


@contextmanager
def load_on(port: int, request: Ask, wanted: bytes, connections: int = 4) -> Iterator[Load]:
    """Ask on several connections at once for as long as the context lasts.

    Args:
        port: of 127.0.0.1.
        request: what is asked.
        wanted: the end of every right response: a response that begins with an id of its own ends with its numbers.
        connections: how many.
    """
    load, ended = Load(), threading.Event()
    threads = [
        threading.Thread(target=_ask_on, args=(port, request, wanted, load, ended))
        for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _ask_on(port: int, request: Ask, wanted: bytes, load: Load, ended: threading.Event) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    while not ended.is_set():
        try:
            status, body = _exchange(connection, request)
        except (OSError, HTTPException) as error:
            load.note(repr(error))
            connection.close()
            ended.wait(BACK_OFF_SECONDS)
        else:
            right = status == 200 and body.endswith(wanted)
            load.note(None if right else f"{status} {body[:200]!r}")
    connection.close()


def _exchange(connection: HTTPConnection, request: Ask) -> tuple[int, bytes]:
    connection.request("POST", request.path, request.body, request.headers)
    response = connection.getresponse()
    return response.status, response.read()
