"""A server to be attacked: a process of its own, within limits of its own."""

import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.attack.attack import Attack
from tests.attack.models import write_repository

ROOT = Path(__file__).parents[2]
START_SECONDS = 120.0
END_SECONDS = 60.0
_ADDRESS = re.compile(r"running on https?://[0-9.]+:(\d+)")


class AttackedServer:
    """`kuiper serve` on a free port, for one attack.

    Attributes:
        port: where it listens.
        lines: what it has logged so far.
    """

    def __init__(self, attack: Attack) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attack-")
        models = ROOT / "models" / "digits"
        if attack.models:
            models = write_repository(Path(self._folder.name), models, attack.models)
        flags = ("--port", "0", "--models", str(models), *attack.flags)
        self._command = [sys.executable, "-m", "service.cli", "serve", *flags]
        self._limits = {resource.RLIMIT_AS: attack.address_space, resource.RLIMIT_NOFILE: attack.descriptors}
        self.port = 0
        self.lines: list[str] = []
        self._listens = threading.Event()

    def __enter__(self) -> Self:
        outside = {name: value for name, value in os.environ.items() if not name.startswith("KUIPER_")}
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=outside | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind, value in self._limits.items():  # set long before it has loaded its first model
            if value is not None:
                resource.prlimit(self._process.pid, kind, (value, value))
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        if not self._listens.wait(START_SECONDS) or not self.port:
            self.end()
            raise RuntimeError("the server did not start:\n" + "\n".join(self.lines))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def process_id(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it runs."""
        return self._process.poll()

    def resident_bytes(self) -> int:
        """Return the memory that it and the processes that it has started have of their own; 0 where it has ended."""
        return sum(map(_resident_bytes, [self.process_id, *_children(self.process_id)]))

    def end(self) -> None:
        """End it, and wait until it has ended."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join()
        self._folder.cleanup()

    def _read_log(self) -> None:
        if self._process.stderr is None:
            return
        with self._process.stderr as log:
            for line in log:
                self.lines.append(line.rstrip("\n"))
                if match := _ADDRESS.search(line):
                    self.port = int(match[1])
                    self._listens.set()
        self._listens.set()


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        lists = Path(f"/proc/{process}/task").glob("*/children")
        return [int(child) for file in lists for child in file.read_text().split()]
    return []


def _resident_bytes(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    return 0
