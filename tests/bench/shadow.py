"""Measure what shadow runs cost those who are answered: the 99th percentile of latency with and without them.

    python -m tests.bench.shadow [--rounds 100] [--requests 50] [--pause 0.0] [--share 0.1]

Two servers have the digits as two versions; one of them makes shadow runs. They are asked in short turns, one
request after the other, so that whatever else the machine does slows both alike. What counts is the ratio of the 99th
percentiles of all their times; its range is that of turns drawn again, with replacement. Responses of both are
compared, but for their times.
"""

import argparse
import http.client
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from engine import Array
from tests.bench.service.server import ROOT, MeasuredServer, free_port

MODEL = ROOT / "models/digits"
SAMPLE = MODEL / "samples/7.png"
MAX_RATIO = 1.1
"""What the ratio may be."""
DRAWN = 1000
"""How often turns are drawn again."""
PLAIN = '\n[traffic]\nweights = {"1" = 1}\n'


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 1 where the ratio is too large, or a response is another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests")
    parser.add_argument("--share", type=float, default=0.1)
    chosen = parser.parse_args(arguments)
    shadow = PLAIN + f'shadow = {{version = "2", share = {chosen.share}}}\n'
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = {
            name: stack.enter_context(_server(_models(root / name, table))).port
            for name, table in {"without": PLAIN, "with": shadow}.items()
        }
        responses = {name: _ask(port, 1, 0.0)[1] for name, port in ports.items()}
        turns: dict[str, list[list[float]]] = {name: [] for name in ports}
        for turn in range(chosen.rounds):
            for name in sorted(ports, reverse=bool(turn % 2)):
                turns[name].append(_ask(ports[name], chosen.requests, chosen.pause)[0])
        outcomes = _outcomes(ports["with"])
    without, shadowed = np.array(turns["without"]), np.array(turns["with"])
    for percent in (50, 90, 99):
        before, after = (np.percentile(times, percent) * 1e3 for times in (without, shadowed))
        low, high = _range(without, shadowed, percent)
        print(
            f"p{percent} {before:.3f} -> {after:.3f} ms, ratio {after / before:.3f} ({low:.3f} to {high:.3f})"
        )
    print(f"shadow runs: {outcomes}")
    is_same = responses["with"] == responses["without"]
    print("responses are the same" if is_same else "responses differ")
    return 0 if is_same and np.percentile(shadowed, 99) <= MAX_RATIO * np.percentile(without, 99) else 1


def _range(without: Array, shadowed: Array, percent: int) -> tuple[float, float]:
    """Return between what the ratio of a percentile lies in 95 % of the draws of turns (Efron's bootstrap).

    Args:
        without: times without shadow runs, (turns, requests).
        shadowed: times with them, of the same shape.
        percent: the percentile.
    """
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(DRAWN):
        drawn = random.integers(0, len(without), len(without))
        ratios.append(np.percentile(shadowed[drawn], percent) / np.percentile(without[drawn], percent))
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def _models(root: Path, table: str) -> Path:
    """Write a folder of models with the digits as two versions; returns it."""
    folder = root / "digits"
    for version in ("1", "2"):
        (folder / version).mkdir(parents=True)
        for file in MODEL.glob("digits.pnnx.*"):
            shutil.copy(file, folder / version)
    for name in ("model.toml", "labels.txt"):
        shutil.copy(MODEL / name, folder)
    with (folder / "model.toml").open("a") as config:
        config.write(table)
    return root


def _server(models: Path) -> MeasuredServer:
    port = free_port()
    command = (sys.executable, "-m", "service", "serve", "--models", str(models), "--port", str(port))
    return MeasuredServer(command, port, "/readyz", {"KUIPER_LOG_LEVEL": "warning"})


def _ask(port: int, requests: int, pause: float) -> tuple[list[float], bytes]:
    """Send requests on one connection; returns the seconds of each, and what the last one was answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body, times, content = SAMPLE.read_bytes(), [], b""
    for _ in range(requests):
        began = time.perf_counter()
        connection.request("POST", "/infer?trace=off", body, {"Content-Type": "image/png"})
        response = connection.getresponse()
        content = response.read()
        times.append(time.perf_counter() - began)
        if response.status != http.client.OK:
            raise RuntimeError(f"status {response.status}: {content[:200]!r}")
        if pause:
            time.sleep(pause)
    connection.close()
    document = json.loads(content)
    return times, json.dumps({key: document[key] for key in ("version", "predictions")}).encode()


def _outcomes(port: int) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/models/digits/traffic")
    return dict(json.loads(connection.getresponse().read())["shadow"]["outcomes"])


if __name__ == "__main__":
    sys.exit(main())
