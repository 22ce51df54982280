"""The servers that examples start, each on a free port."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Listener
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

SOON = 60.0
"""Timeout of a server, in seconds."""
_ADDRESS = re.compile(r"running on https?://127\.0\.0\.1:(\d+)")


class Servers:
    """Starts `kuiper serve` for the stand-in of that command in a checkout, one server after the other.

    Args:
        folder: where the servers run, and where curl looks for its configuration: `127.0.0.1:8000` leads to the server.
        backend: what runs their models.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder = folder
        self._backend = {"KUIPER_BACKEND": backend}
        self._server: subprocess.Popen[str] | None = None
        self._log: Thread | None = None
        self._listener = Listener(family="AF_UNIX")
        self._answering = Thread(target=self._respond, daemon=True)
        self.port: int | None = None
        self.key = self._listener.address

    def __enter__(self) -> Self:
        self._answering.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._listener.close()

    def start(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
        """Start a server in place of the one before; returns what is wrong, or None once it accepts requests."""
        self.stop()
        command = [sys.executable, "-m", "service.cli", *arguments, "--host", "127.0.0.1", "--port", "0"]
        self._server = server = subprocess.Popen(
            command, cwd=self._folder, env={**environment, **self._backend}, stderr=subprocess.PIPE, text=True
        )
        lines = []
        for line in server.stderr or ():
            lines.append(line)
            if found := _ADDRESS.search(line):
                self.lead_to(int(found[1]))
                self._log = Thread(target=server.communicate)
                self._log.start()
                return None
        server.wait(SOON)
        return "".join(lines)

    def stop(self) -> None:
        """End the server that runs, if there is one."""
        if self._server is not None:
            self._server.terminate()
            if self._log is not None:
                self._log.join(SOON)
            self._server.wait(SOON)
        self._server = self._log = self.port = None

    def lead_to(self, port: int) -> None:
        """Lead the examples of the folder to the server on a port."""
        self.port = port
        (self._folder / ".curlrc").write_text(f'connect-to = "127.0.0.1:8000:127.0.0.1:{port}"\n')

    def _respond(self) -> None:
        while True:
            try:
                with self._listener.accept() as connection:
                    connection.send(self.start(*connection.recv()))
            except (OSError, EOFError):
                return  # the listener is closed
