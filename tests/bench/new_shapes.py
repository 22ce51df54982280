"""What steady clients notice of requests in new shapes: the 99th percentile of their latency, with and without them.

    python -m tests.bench.new_shapes [--models digits encoder] [--precisions f32 bf16 int8] [--rounds 5] [--clients 16]

Each round starts a server with an empty folder of compiled code. Clients ask it for one shape without a pause: first
alone, then while another client sends one request in each of 50 new shapes, one after the other, then alone again while
the compiler may still be at what came. New shapes are numbers of rows for the digits, whose rows run in parts, and
lengths for the encoder, whose file leaves the length open. In int8 both are calibrated on noise: only time counts here.
The ratio of a round is that of its 99th percentiles; what counts is the median of the rounds.
"""

import argparse
import http.client
import io
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from engine import Array
from service.commands.dispatch import run_command
from tests.bench.encoder import WORDS, write_encoder
from tests.bench.service.server import ROOT, MeasuredServer, free_port

SHAPES = 50
"""New shapes of a round."""
MAX_RATIO = 3.0
"""What the ratio may be."""
STEADY_LENGTH, FIRST_LENGTH, LENGTH_STEP = 16, 17, 2
"""Tokens of steady requests, of the first in a new shape, and from one new shape to the next."""
FIRST_ROWS = 9
"""Rows of the first request in a new shape; the digits are batched up to 8."""
LAYERS, WIDTH = 6, 384
EXAMPLES = 8


@dataclass(frozen=True)
class Model:
    """A model, and what it is asked.

    Attributes:
        folder: where it is.
        steady: what steady clients send.
        new: one request for each new shape.
        examples: what int8 is calibrated on, (examples, *shape of the input).
    """

    folder: Path
    steady: bytes
    new: Sequence[bytes]
    examples: Array


@dataclass(frozen=True)
class Round:
    """The 99th percentiles of steady requests in one round, in seconds.

    Attributes:
        alone: before there are others.
        beside: of those that were answered while requests in new shapes were asked.
        after: of those after them.
        asked: seconds that the requests in new shapes took.
    """

    alone: float
    beside: float
    after: float
    asked: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 1 where a ratio is too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument(
        "--precisions", nargs="+", choices=("f32", "bf16", "int8"), default=["f32", "bf16", "int8"]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3.0, help="alone, before and after")
    chosen = parser.parse_args(arguments)
    print(
        "| model | precision | p99 alone, ms | beside new shapes | ratio | of rounds | after them | new shapes, s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    worst = 0.0
    for name in chosen.models:
        for precision in chosen.precisions:
            with tempfile.TemporaryDirectory() as folder:
                model = MODELS[name](Path(folder), precision)
                rounds = [measure_round(model, chosen.clients, chosen.seconds) for _ in range(chosen.rounds)]
            worst = max(worst, ratio_of(rounds))
            print(row(name, precision, rounds), flush=True)
    return int(worst > MAX_RATIO)


def ratio_of(rounds: Sequence[Round]) -> float:
    """Return how many times as long the 99th percentile is beside new shapes: the median of the rounds."""
    return median(one.beside / one.alone for one in rounds)


def row(name: str, precision: str, rounds: Sequence[Round]) -> str:
    """Return the rounds of a model as a line of the table."""
    ratios = sorted(one.beside / one.alone for one in rounds)
    alone, beside, after = (
        median(getattr(one, part) for one in rounds) * 1e3 for part in ("alone", "beside", "after")
    )
    return (
        f"| {name} | {precision} | {alone:.1f} | {beside:.1f} | {ratio_of(rounds):.2f} "
        f"| {ratios[0]:.2f} to {ratios[-1]:.2f} | {after:.1f} | {median(one.asked for one in rounds):.2f} |"
    )


def measure_round(model: Model, clients: int, seconds: float) -> Round:
    """Start a server, ask it, and end it."""
    with tempfile.TemporaryDirectory() as cache, _server(model.folder, Path(cache)) as port:
        steady = [SteadyClient(port, model.steady) for _ in range(clients)]
        try:
            _wait(seconds)  # connections, and programs of batches that are compiled in the background
            times = [time.perf_counter()]
            _wait(seconds)
            times.append(time.perf_counter())
            for body in model.new:
                ask(port, body)
            times.append(time.perf_counter())
            _wait(seconds)
            times.append(time.perf_counter())
        finally:
            taken = [request for client in steady for request in client.stop()]
    parts = ([end - begun for begun, end in taken if first <= end < last] for first, last in pairwise(times))
    alone, beside, after = (float(np.percentile(part, 99)) for part in parts)
    return Round(alone, beside, after, times[2] - times[1])


class SteadyClient:
    """Asks the same on one connection without a pause, until it is stopped; see `stop`."""

    def __init__(self, port: int, body: bytes) -> None:
        self._port, self._body = port, body
        self._stopped = threading.Event()
        self._taken: list[tuple[float, float]] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> list[tuple[float, float]]:
        """End; returns when each request was begun and answered.

        Raises:
            RuntimeError: a request failed.
        """
        self._stopped.set()
        self._thread.join()
        if self._error is not None:
            raise RuntimeError("a steady request failed") from self._error
        return self._taken

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            while not self._stopped.is_set():
                begun = time.perf_counter()
                _ask_on(connection, self._body)
                self._taken.append((begun, time.perf_counter()))
        except (OSError, http.client.HTTPException, RuntimeError) as error:
            self._error = error
        finally:
            connection.close()


def ask(port: int, body: bytes) -> None:
    """Send a request on a connection of its own, and wait for its response.

    Raises:
        RuntimeError: it is not answered 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    _ask_on(connection, body)
    connection.close()


def _ask_on(connection: http.client.HTTPConnection, body: bytes) -> None:
    connection.request("POST", "/infer?trace=off", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status != http.client.OK:
        raise RuntimeError(f"status {response.status}: {content[:200]!r}")


@contextmanager
def _server(folder: Path, cache: Path) -> Iterator[int]:
    port = free_port()
    flags = ("--models", str(folder), "--port", str(port), "--log-level", "error")
    command = (sys.executable, "-m", "service", "serve", *flags)
    with MeasuredServer(command, port, "/readyz", {"KUIPER_CACHE": str(cache)}):
        yield port


def _wait(seconds: float) -> None:
    """Let the steady clients ask for a while."""
    time.sleep(seconds)


def _body(array: Array) -> bytes:
    return json.dumps({"inputs": [{"data": array.tolist()}]}).encode()


def digits(root: Path, precision: str) -> Model:
    """Write the digits, asked for one row and for many."""
    folder = root / "digits"
    shutil.copytree(
        ROOT / "models/digits", folder, ignore=shutil.ignore_patterns("samples", "training", "*.py")
    )
    random = np.random.default_rng(0)
    new = (random.random((FIRST_ROWS + place, 1, 28, 28)).round(3) for place in range(SHAPES))
    examples = random.random((EXAMPLES, 1, 1, 28, 28), np.float32)
    model = Model(folder, _body(examples[0].round(3)), list(map(_body, new)), examples)
    return _in_precision(model, precision)


def encoder(root: Path, precision: str) -> Model:
    """Write an encoder of MiniLM's size, asked for one length and for many."""
    folder = root / "encoder"
    folder.mkdir()
    write_encoder(folder, LAYERS, WIDTH)
    # what is asked all the time is compiled at load, as it is where somebody cares for percentiles
    (folder / "model.toml").write_text(f"[warm_up]\nshapes = [[1, {STEADY_LENGTH}]]\n")
    random = np.random.default_rng(0)
    examples = random.integers(0, WORDS, (EXAMPLES, 1, STEADY_LENGTH))
    lengths = (FIRST_LENGTH + LENGTH_STEP * place for place in range(SHAPES))
    new = [_body(random.integers(0, WORDS, (1, length))) for length in lengths]
    return _in_precision(Model(folder, _body(examples[0]), new, examples), precision)


def _in_precision(model: Model, precision: str) -> Model:
    config = model.folder / "model.toml"
    config.write_text(f'precision = "{precision}"\n' + (config.read_text() if config.exists() else ""))
    if precision == "int8":
        archive = model.folder.parent / "examples.npz"
        np.savez(archive, in_0=model.examples)
        with redirect_stdout(io.StringIO()):  # its report is not of what is measured
            failed = run_command(["quantize", str(model.folder), "--data", str(archive)])
        if failed:
            raise RuntimeError(f"{model.folder.name} cannot be quantized")
    return model


MODELS = {"digits": digits, "encoder": encoder}
"""What writes a model, by its name."""

if __name__ == "__main__":
    sys.exit(main())
