"""Servers in processes of their own, started and measured alike."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import urlopen

ROOT = Path(__file__).parents[3]
START_SECONDS = 90.0
END_SECONDS = 20.0


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass
class MeasuredServer:
    """A server that is started, asked and ended.

    Attributes:
        command: its command line.
        port: where it listens.
        ready: path that answers 200 as soon as it serves.
        environment: variables that it needs.
        processes: how many serve; with several, this server's metrics show when all of them do.
        ready_seconds: from its start to its first response of `ready`.
    """

    command: Sequence[str]
    port: int
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1
    ready_seconds: float = 0.0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Id of the process that was started."""
        return self._process.pid

    def __enter__(self) -> Self:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(self.environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._wait(started, self._is_ready)
            self.ready_seconds = time.perf_counter() - started
            self._wait(started, self._is_complete)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def memory(self) -> int:
        """Return the bytes that its processes have in memory; pages that they share count once."""
        return sum(_proportional(pid) for pid in _tree(self._process.pid))

    def cpu_seconds(self) -> float:
        """Return the time of the processor that its processes have taken so far; those that ended do not count."""
        return sum(cpu_seconds(pid) for pid in _tree(self._process.pid))

    def _wait(self, started: float, is_reached: Callable[[], bool]) -> None:
        while time.perf_counter() - started < START_SECONDS:
            if self._process.poll() is not None:
                raise RuntimeError(f"{' '.join(self.command)} ended with {self._process.returncode}")
            with suppress(OSError):
                if is_reached():
                    return
            time.sleep(0.02)
        raise TimeoutError(f"{' '.join(self.command)} was not ready after {START_SECONDS:g} s")

    def _is_ready(self) -> bool:
        with urlopen(self.url + self.ready, timeout=1) as response:
            return bool(response.status == 200)

    def _is_complete(self) -> bool:
        """Return whether all processes serve: the server is ready as soon as the first one does."""
        if self.processes == 1:
            return True
        with urlopen(f"{self.url}/metrics", timeout=1) as response:
            text: bytes = response.read()
        return sum(line.startswith(b"kuiper_workers{") for line in text.splitlines()) == self.processes

    def _end(self) -> None:
        """End it and what it started: they are a process group of their own."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _tree(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(int(child) for child in children.read_text().split())
    return found


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def cpu_seconds(pid: int) -> float:
    """Return the time of the processor that a process has taken so far."""
    # after the name, which may hold anything: user and system time are the 12th and 13th field from the state on
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
