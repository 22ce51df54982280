"""Clients on threads that have digits recognised, again and again, and compare each response with the expected one."""

import http.client
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.service.server.client_threads import ClientThreads
from tests.service.server.process import ROOT

PICTURES = sorted((ROOT / "models/digits/samples").glob("*.png"))
TARGET = "/infer?model=digits&trace=off"
PERIOD = 60.0
"""Timeout of a client that gets no response, in seconds."""
TOLERANCE = 1e-5
"""Maximum difference of an output from what was answered alone."""
MAX_FAULTS = 20


def ask(url: str, picture: Path) -> tuple[int, Any]:
    """Return status and document of one response, asked for on a connection of its own.

    Raises:
        OSError, http.client.HTTPException: there was none.
    """
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PERIOD)
    try:
        return _ask_on(connection, picture)
    finally:
        connection.close()


def expected_of(url: str) -> dict[Path, list[float]]:
    """Return what a server responses to each picture when nothing else is asked."""
    found = {}
    for picture in PICTURES:
        status, document = ask(url, picture)
        if status != http.client.OK:
            raise ValueError(f"{picture.name}: {status} {document}")
        found[picture] = _outputs(document)
    return found


def differs(document: Any, expected: list[float]) -> bool:
    """Return whether the outputs of a response are not those that are expected."""
    outputs = _outputs(document)
    pairs = zip(outputs, expected, strict=False)
    return len(outputs) != len(expected) or any(abs(one - other) > TOLERANCE for one, other in pairs)


class Askers(ClientThreads):
    """Some clients, who ask from entering to leaving.

    Args:
        url: the server.
        expected: picture -> what is to be answered.
        count: how many clients.
        survives: whether the server is to go on: a connection that breaks is a fault then.

    Attributes:
        responses: number of right responses.
        faults: what was wrong, the first of it.
    """

    def __init__(self, url: str, expected: dict[Path, list[float]], count: int, *, survives: bool) -> None:
        self._url, self._expected, self._survives = url, expected, survives
        super().__init__(count)
        self._lock = threading.Lock()
        self.responses = 0
        self.faults: list[str] = []

    def _run(self, number: int) -> None:
        connection = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=PERIOD)
        while not self._stopped.is_set():
            number += 1
            picture = PICTURES[number % len(PICTURES)]
            try:
                status, document = _ask_on(connection, picture)
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                if self._survives:
                    self._blame(f"{type(error).__name__}: {error}")
                self._stopped.wait(0.05)
                continue
            self._judge(picture, status, document)
        connection.close()

    def _judge(self, picture: Path, status: int, document: Any) -> None:
        if status == http.client.OK and not differs(document, self._expected[picture]):
            with self._lock:
                self.responses += 1
        elif status != http.client.SERVICE_UNAVAILABLE or self._survives:
            self._blame(f"{picture.name}: {status} {str(document)[:300]}")

    def _blame(self, fault: str) -> None:
        with self._lock:
            if len(self.faults) < MAX_FAULTS:
                self.faults.append(fault)


def _ask_on(connection: http.client.HTTPConnection, picture: Path) -> tuple[int, Any]:
    connection.request("POST", TARGET, picture.read_bytes(), {"Content-Type": "image/png"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def _outputs(document: Any) -> list[float]:
    return [number for output in document["outputs"] for row in output["data"] for number in row]
