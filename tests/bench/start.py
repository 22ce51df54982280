"""How long a server takes to be ready: the first start, which compiles, and the starts after it.

Run: make bench-start        (or python -m tests.bench.start [FOLDER …] [--rounds N] [--at-once N])

A folder holds one model; by default they are models/digits, and ResNet18 as PyTorch has it. Each round begins with an
empty folder of compiled code and starts a server twice; Python's byte code is there, as in any installation. The times
are from the start of the process to the first 200 of /readyz, the least of all rounds: whatever else the machine does
only adds to them. Then so many servers are started at once on an empty folder, and have to come up all.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.bench.export import export
from tests.bench.models import MODELS, ModelFiles
from tests.bench.service.server import ROOT, MeasuredServer, free_port
from tests.bench.worker import in_own_process

STARTS = 2
"""Starts of a round: the first, and one that finds what it kept."""


def main() -> None:
    """Measure, and print a table."""
    arguments = parse()
    for package in ("engine", "service"):  # as pip does, whatever has changed since
        compile_dir(ROOT / package, quiet=1)
    with _folders(arguments.folders) as folders:
        print(f"{'seconds to ready':<20}{'first':>10}{'second':>10}{f'{arguments.at_once} at once':>14}")
        for folder in folders:
            rounds = [measure_round(folder) for _ in range(arguments.rounds)]
            first, second = (min(times) for times in zip(*rounds, strict=True))
            together = max(measure_at_once(folder, arguments.at_once))
            print(f"{folder.name:<20}{first:>10.2f}{second:>10.2f}{together:>14.2f}", flush=True)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--at-once", type=int, default=8, metavar="N")
    return parser.parse_args()


def measure_round(folder: Path) -> list[float]:
    """Start servers one after the other on a folder that is empty at first; returns how long each took, in seconds."""
    with tempfile.TemporaryDirectory() as cache:
        return [_start(folder, Path(cache)) for _ in range(STARTS)]


def measure_at_once(folder: Path, count: int) -> list[float]:
    """Start servers at the same time on one empty folder; returns how long each took, in seconds."""
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda _: _start(folder, Path(cache)), range(count)))


def _start(folder: Path, cache: Path) -> float:
    port = free_port()
    flags = ["--models", str(folder), "--port", str(port), "--log-level", "error"]
    command = [sys.executable, "-m", "service.cli", "serve", *flags]
    with MeasuredServer(command, port, "/readyz", {"KUIPER_CACHE": str(cache)}) as server:
        return server.ready_seconds


@contextmanager
def _folders(given: Sequence[Path]) -> Iterator[Sequence[Path]]:
    """Enclose the use of the folders to measure; ResNet18 is exported where none is given."""
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "resnet18"
        in_own_process(export, ModelFiles(MODELS["resnet18"], place))
        for path in place.iterdir():
            if not path.name.startswith("model.pnnx"):
                path.unlink()
        yield [ROOT / "models" / "digits", place]


if __name__ == "__main__":
    main()
