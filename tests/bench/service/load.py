"""The load that every server is put under: wrk, with one request at a time on each of its connections.

wrk is a program of its own, in Debian's and Homebrew's package `wrk`. Its rates and medians were those of a
generator in Python within the noise. Its 99th percentile is higher by design: where a server stalls, wrk also counts
the requests that would have been sent meanwhile.
"""

import json
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

WARM_UP_SECONDS = 1
TIMEOUT_SECONDS = 60
"""A response that takes longer counts as a failure."""
SCRIPT = Path(__file__).with_name("load.lua")


@dataclass(frozen=True, slots=True)
class Timings:
    """What a server did under a load.

    Attributes:
        per_second: requests per second.
        p50: median milliseconds from request to response.
        p99: milliseconds that 99 of 100 requests stayed below.
    """

    per_second: float
    p50: float
    p99: float

    def __str__(self) -> str:
        return f"{self.per_second:.0f} requests/s, median {self.p50:.2f} ms, p99 {self.p99:.2f} ms"


class LoadError(Exception):
    """The load could not be made, or the server did not answer all of it with success."""


def find_wrk() -> str:
    """Return the path of wrk.

    Raises:
        LoadError: it is not installed.
    """
    path = shutil.which("wrk")
    if path is None:
        raise LoadError(
            "the load is made by wrk, which is not installed: apt install wrk, or brew install wrk"
        )
    return path


def measure(url: str, request: bytes, connections: int, seconds: int) -> Timings:
    """Send a request over and over for some seconds, after a warm-up; returns the timings.

    Args:
        url: the server.
        request: what each connection sends, head and body.
        connections: how many send at once.
        seconds: how long.

    Raises:
        LoadError: wrk is missing or failed, or a response was an error or did not come.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(request)
        file.flush()
        _run(url, file.name, connections, WARM_UP_SECONDS)
        drain(url, request)
        return _run(url, file.name, connections, seconds)


def drain(url: str, request: bytes) -> None:
    """Send a request once, and wait for its response.

    Servers that do not notice that a client is gone still run what wrk left when its time was up. That would count
    against them: with slow models for a good part of a second. A response comes only after what was there before.

    Raises:
        LoadError: there is no response.
    """
    address = urlsplit(url)
    try:
        with socket.create_connection((address.hostname, address.port), TIMEOUT_SECONDS) as connection:
            connection.sendall(request)
            answered = connection.recv(1)
    except OSError as error:
        raise LoadError(f"{url} does not answer: {error}") from error
    if not answered:
        raise LoadError(f"{url} does not answer: it closed the connection")


def read_summary(output: str) -> Timings:
    """Return the timings of what wrk printed: the last line is the script's, in JSON.

    Raises:
        LoadError: a response was an error, or did not come.
    """
    summary = json.loads(output.splitlines()[-1])
    if summary["errors"] or summary["failures"]:
        raise LoadError(
            f"{summary['errors']} requests were answered by an error, {summary['failures']} were not answered"
        )
    return Timings(summary["requests"] / summary["seconds"], summary["p50_ms"], summary["p99_ms"])


def _run(url: str, file: str, connections: int, seconds: int) -> Timings:
    command = [find_wrk(), "--threads=1", f"--connections={connections}", f"--duration={seconds}s"]
    command += [f"--timeout={TIMEOUT_SECONDS}s", f"--script={SCRIPT}", url, "--", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadError(f"wrk failed: {done.stderr or done.stdout}")
    return read_summary(done.stdout)
