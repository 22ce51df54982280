"""Clients that ask a server all the time, and keep what went wrong."""

import http.client
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit

from tests.service.server.client_threads import PAUSE, ClientThreads
from tests.service.server.process import SOON

BODY = b'{"inputs": [{"data": [[1, -2, 3]]}]}'
RESPONSE = b"[[1"


@dataclass
class ClientReport:
    """What a client saw.

    Attributes:
        responses: how many responses there were of each status.
        broken: on which of its connections it got none, and why; a connection is counted once.
        longest: seconds of its slowest request.
        asked: requests that it has sent.
    """

    responses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    longest: float = 0.0
    asked: int = 0


class Load(ClientThreads):
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
        self._counted = threading.Condition()
        self.reports = [ClientReport() for _ in range(clients)]
        super().__init__(clients)

    @property
    def responses(self) -> Counter[int]:
        """How many responses there were of each status."""
        return sum((reported.responses for reported in self.reports), Counter())

    @property
    def broken(self) -> list[str]:
        """Why there were none on some connections."""
        return [reason for reported in self.reports for reason in reported.broken]

    def until_answered(self, count: int) -> None:
        """Return when each client has got so many responses more."""
        wanted = [reported.responses.total() + count for reported in self.reports]
        with self._counted:
            assert self._counted.wait_for(
                lambda: all(
                    reported.responses.total() >= least
                    for reported, least in zip(self.reports, wanted, strict=True)
                ),
                SOON,
            ), self.reports

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=SOON)
        return http.client.HTTPSConnection(host, port, timeout=SOON, context=self._tls)

    def _run(self, number: int) -> None:
        reported = self.reports[number]
        connection = self._connect()
        while not self._stopped.wait(PAUSE):
            began = monotonic()
            try:
                reported.asked += 1
                connection.request("POST", self._path, BODY, {"Content-Type": "application/json"})
                response = connection.getresponse()
                body = response.read()
                assert response.status != 200 or RESPONSE in body, body
                with self._counted:
                    reported.responses[response.status] += 1
                    self._counted.notify_all()
            except (OSError, http.client.HTTPException) as error:
                reported.broken.append(repr(error))
                connection.close()
                connection = self._connect()
            reported.longest = max(reported.longest, monotonic() - began)
        connection.close()
