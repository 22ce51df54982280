"""Clients that ask a server without a pause, and keep what went wrong."""

import http.client
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.service.server.process import SOON

BODY = b'{"inputs": [{"data": [[1, -2, 3]]}]}'
ANSWER = b"[[1"


@dataclass
class Told:
    """What a client saw.

    Attributes:
        answers: how many answers there were of each status.
        broken: on which of its connections it got none, and why; a connection is counted once.
        longest: seconds of its slowest request.
        asked: requests that it has sent.
    """

    answers: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    longest: float = 0.0
    asked: int = 0


class Load:
    """Clients, each on a connection of its own, which ends when the server says so.

    Args:
        url: where the server is.
        clients: how many.
        path: what they ask.
        tls: for HTTPS.
    """

    def __init__(
        self,
        url: str,
        clients: int = 4,
        path: str = "/infer?model=vector&trace=off",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = urlsplit(url)
        self._tls = tls
        self._path = path
        self._stopped = threading.Event()
        self._counted = threading.Condition()
        self.told = [Told() for _ in range(clients)]
        self._threads = [threading.Thread(target=self._ask, args=(told,)) for told in self.told]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def answers(self) -> Counter[int]:
        """How many answers there were of each status."""
        return sum((told.answers for told in self.told), Counter())

    @property
    def broken(self) -> list[str]:
        """Why there were none on some connections."""
        return [reason for told in self.told for reason in told.broken]

    def until_answered(self, count: int) -> None:
        """Return when each client has got so many answers more."""
        wanted = [told.answers.total() + count for told in self.told]
        with self._counted:
            assert self._counted.wait_for(
                lambda: all(
                    told.answers.total() >= least for told, least in zip(self.told, wanted, strict=True)
                ),
                SOON,
            ), self.told

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=SOON)
        return http.client.HTTPSConnection(host, port, timeout=SOON, context=self._tls)

    def _ask(self, told: Told) -> None:
        connection = self._connect()
        while not self._stopped.is_set():
            began = monotonic()
            try:
                told.asked += 1
                connection.request("POST", self._path, BODY, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status != 200 or ANSWER in body, body
                with self._counted:
                    told.answers[answer.status] += 1
                    self._counted.notify_all()
            except (OSError, http.client.HTTPException) as error:
                told.broken.append(repr(error))
                connection.close()
                connection = self._connect()
            told.longest = max(told.longest, monotonic() - began)
        connection.close()
