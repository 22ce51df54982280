"""The way of one request: which functions of this project a warm `POST /infer` calls, and in which files.

Run: python -m tests.bench.request_path [--calls]

The application runs in this process, without uvicorn. The request is a picture for the digits, with its trace off.
Calls on the event loop and on workers are counted; those into dependencies are not, nor are comprehensions and
generator expressions.
"""

import argparse
import asyncio
import shutil
import sys
import threading
from collections import Counter
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from starlette.types import Message, Scope

from service.app import create_app
from service.config.settings import Settings

ROOT = Path(__file__).parents[2]
_ROOT = f"{ROOT}/"
MODEL = ROOT / "models/digits"
WARM = 20
"""Requests before those that are counted: programs are compiled, caches filled."""
COUNTED = 5

Call = tuple[str, str]
"""File, from the root of the project, and the qualified name of a function."""


def _serves_requests() -> bool:
    """Return whether this thread is the event loop's or a worker: others compile and verify programs meanwhile."""
    return threading.current_thread().name.startswith(("MainThread", "worker"))


class Calls(Counter[Call]):
    """Counts calls of own functions on all threads while `on`."""

    on = False

    def install(self) -> None:
        """Count on this thread, and on those that start from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def uninstall(self) -> None:
        """Count no more."""
        threading.setprofile(None)
        sys.setprofile(None)

    async def of(self, app: Any, body: bytes) -> Counter[Call]:
        """Return how often one request calls each function."""
        self.clear()
        self.on = True
        status = await send(app, body)
        await asyncio.sleep(0.05)  # the worker goes back to its queue
        self.on = False
        if status != HTTPStatus.OK:
            raise RuntimeError(f"the status is {status}")
        return Counter(self)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and self.on and code.co_filename.startswith(_ROOT) and _serves_requests():
            name = code.co_filename.removeprefix(_ROOT)
            if name.startswith(("service/", "engine/")) and not code.co_name.startswith("<"):
                self[name, code.co_qualname] += 1


async def send(app: Any, body: bytes) -> int:
    """Send one request to an application; returns the status."""
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/infer",
        "raw_path": b"/infer",
        "root_path": "",
        "query_string": b"model=digits&trace=off",
        "headers": [
            (b"host", b"127.0.0.1:8000"),
            (b"content-type", b"image/png"),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    sent: list[Message] = []
    received = False

    async def receive() -> Message:
        nonlocal received
        if received:
            await asyncio.Event().wait()
        received = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def note(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, note)
    return int(sent[0]["status"])


async def count() -> Counter[Call]:
    """Return how often one warm request calls each function."""
    calls = Calls()
    calls.install()
    body = (MODEL / "samples/0.png").read_bytes()
    try:
        with TemporaryDirectory() as folder:
            shutil.copytree(MODEL, Path(folder) / MODEL.name)
            app = create_app(Settings(models=Path(folder), trace_rate=0, log_level="warning"))
            async with app.router.lifespan_context(app):
                for _ in range(WARM):
                    await send(app, body)
                counted = [await calls.of(app, body) for _ in range(COUNTED)]
    finally:
        calls.uninstall()
    return min(counted, key=Counter.total)  # a slow one is watched for a client that leaves


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", action="store_true", help="list the functions of each file")
    options = parser.parse_args()
    calls = asyncio.run(count())
    files: Counter[str] = Counter()
    for (name, _), times in calls.items():
        files[name] += times
    for name, times in files.most_common():
        print(f"{times:5} {name}")
        if options.calls:
            for (own, function), number in sorted(calls.items()):
                if own == name:
                    print(f"      {number:5} {function}")
    print(f"{sum(files.values())} calls in {len(files)} files")


if __name__ == "__main__":
    main()
