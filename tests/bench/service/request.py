"""One request, as the load sends it over and over, and as it is sent once to look at its response."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class PostRequest:
    """A POST request.

    Attributes:
        path: path and query.
        body: its body.
        headers: its headers, but for the host and the length.
    """

    path: str
    body: bytes
    headers: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """Return head and body as they go over a connection."""
        lines = [f"{name}: {value}" for name, value in self.headers.items()]
        head = [f"POST {self.path} HTTP/1.1", "Host: 127.0.0.1", *lines, f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*head, "", ""]).encode() + self.body

    def send(self, url: str) -> httpx.Response:
        """Send it once to a server; returns the response.

        Raises:
            httpx.HTTPError: there is no response, or it is an error.
        """
        response = httpx.post(
            url + self.path, content=self.body, headers=dict(self.headers), timeout=TIMEOUT_SECONDS
        )
        return response.raise_for_status()
