"""A server in a process of its own, and the pipes that its blocking layers wait on."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, Self

from tests.service.server.blocking import ENTERED, GATE, PASSED

ROOT = Path(__file__).parents[3]
SOON = 180.0
"""Timeout of a test for its server, in seconds."""
_READY = re.compile(r"running on (https?://[0-9.]+:\d+)")
_OPEN = re.compile(r"listening on (https?://[0-9.]+:\d+)")


class Pipe:
    """One direction between the test and the server."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def take(self) -> int:
        """Return the next byte that the server wrote."""
        ready, _, _ = select.select([self.read_end], [], [], SOON)
        assert ready, "the server wrote nothing"
        return os.read(self.read_end, 1)[0]

    def give(self, count: int = 1) -> None:
        """Let `count` waiting layers go on."""
        os.write(self.write_end, b"." * count)

    def clear(self) -> None:
        """Discard all that has not been taken."""
        while select.select([self.read_end], [], [], 0)[0]:
            os.read(self.read_end, 4096)

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


class ServerProcess:
    """`kuiper serve` on a free port; entered when its models are loaded, or as soon as the port is open.

    Args:
        flags: its flags.
        module: what to run.
        until_ready: whether to wait until its models are loaded.
        within: a command that is to run it.
        environment: variables besides those of the caller.

    Attributes:
        url: where it listens.
        entered: numbers of the requests that have reached the layer which blocks.
        gate: lets them go on.
        passed: numbers of the requests that went on to the next layer.
        lines: what it has logged so far.
    """

    def __init__(
        self,
        *flags: str,
        module: str = "tests.service.server.blocking",
        until_ready: bool = True,
        within: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.entered, self.gate, self.passed = Pipe(), Pipe(), Pipe()
        self._command = [*within, sys.executable, "-m", module, "serve", "--port", "0", *flags]
        self._address = _READY if until_ready else _OPEN
        self._environment = dict(environment or {})
        self.lines: list[str] = []
        self._new_lines: Queue[str | None] = Queue()

    def __enter__(self) -> Self:
        fds = {ENTERED: self.entered.write_end, GATE: self.gate.read_end, PASSED: self.passed.write_end}
        outside = {name: value for name, value in os.environ.items() if not name.startswith("KUIPER_")}
        self.process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=outside | {name: str(fd) for name, fd in fds.items()} | self._environment,
            pass_fds=tuple(fds.values()),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        try:
            self.url = self.wait_for_line(self._address)[1]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def wait_for_line(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Return the first match in what is logged from now on."""
        while True:
            try:
                line = self._new_lines.get(timeout=SOON)
            except Empty as error:
                raise AssertionError(
                    f"no line with {pattern.pattern} in\n" + "\n".join(self.lines)
                ) from error
            if line is None:
                raise AssertionError("the server ended:\n" + "\n".join(self.lines))
            if match := pattern.search(line):
                return match

    def reset(self) -> None:
        """Discard what an earlier test left in the pipes and in the log; the server must be idle."""
        for pipe in (self.entered, self.gate, self.passed):
            pipe.clear()
        while not self._new_lines.empty():
            self._new_lines.get()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(SOON)

    def records(self) -> list[dict[str, Any]]:
        """Return what was logged as JSON, once the process has ended."""
        self._reader.join()
        return [json.loads(line) for line in self.lines]

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as log:
            for line in log:
                self.lines.append(line.rstrip("\n"))
                self._new_lines.put(line)
        self._new_lines.put(None)

    def _end(self) -> None:
        if self.process.poll() is None:
            self.gate.give(100)
            self.process.terminate()
            try:
                self.process.wait(SOON)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join()
        for pipe in (self.entered, self.gate, self.passed):
            pipe.close()


def run_to_end(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run `kuiper serve` that is to fail at start-up."""
    command = [sys.executable, "-m", "service.cli", "serve", "--port", "0", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SOON, check=False)
