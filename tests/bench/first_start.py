"""Peak memory of a model's first start and of later ones, beside onnxruntime's, and what they take of the processor.

Run: python -m tests.bench.first_start [--models resnet18] [--precisions int8] [--rounds 3] [--threads 1]

Each round begins with an empty folder of compiled code, and loads the model twice, each time in a process of its own,
as `make bench` does: the first compiles, packs weights and compares, the second finds what that kept. Peaks are VmHWM
after three runs; medians of the rounds. In int8, all are quantized in other processes before. The command ends with
status 1 where the first start's peak is above onnxruntime's.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench import loaded
from tests.bench.export import export
from tests.bench.models import MODELS, ModelFiles
from tests.bench.runtimes import BASE
from tests.bench.worker import Worker, in_own_process

RUNTIMES = {"f32": ("native", BASE), "bf16": ("native-bf16", BASE), "int8": ("native-int8", f"{BASE}-int8")}
"""This engine's runtime and the one that it is held against, by precision."""


@dataclass(frozen=True)
class Start:
    """One start.

    Attributes:
        peak: bytes of memory at most.
        seconds: what the process took of the processor until it had run three times, its imports among that.
    """

    peak: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; returns 1 where a first start takes more memory than onnxruntime's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=["resnet18"])
    parser.add_argument("--precisions", nargs="+", choices=tuple(RUNTIMES), default=["int8"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(arguments)
    print("| model | precision | first, MiB | later, MiB | onnxruntime, MiB | first, s | later, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    is_above = False
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.models:
            files = ModelFiles(MODELS[name], Path(folder) / name)
            in_own_process(export, files)
            for precision in chosen.precisions:
                ours, peer = RUNTIMES[precision]
                (
                    start(ours, files, chosen.threads),
                    start(peer, files, chosen.threads),
                )  # they are quantized now
                rounds = [measure_round(ours, peer, files, chosen.threads) for _ in range(chosen.rounds)]
                first, later, other = (list(starts) for starts in zip(*rounds, strict=True))
                peaks = [median(one.peak for one in starts) / 2**20 for starts in (first, later, other)]
                print(
                    f"| {name} | {precision} | {peaks[0]:.1f} | {peaks[1]:.1f} | {peaks[2]:.1f} "
                    f"| {seconds_of(first):.2f} | {seconds_of(later):.2f} |",
                    flush=True,
                )
                is_above |= peaks[0] > peaks[2]
    return int(is_above)


def measure_round(ours: str, peer: str, files: ModelFiles, threads: int) -> tuple[Start, Start, Start]:
    """Return a first start, a later one, and one of the other runtime."""
    kept = os.environ.get("KUIPER_CACHE")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KUIPER_CACHE"] = cache
        try:
            return tuple(start(name, files, threads) for name in (ours, ours, peer))  # type: ignore[return-value]
        finally:
            del os.environ["KUIPER_CACHE"]
            os.environ |= {} if kept is None else {"KUIPER_CACHE": kept}


def start(runtime: str, files: ModelFiles, threads: int) -> Start:
    """Load a model in a process of its own, and run it.

    Raises:
        RuntimeError: the system does not say how much memory that took.
    """
    with Worker(loaded.load, runtime, files, threads) as worker:
        peak = worker.ask(loaded.startup_of).peak_bytes
        seconds = worker.ask(_processor_seconds)
    if peak is None:
        raise RuntimeError("the system does not say how much memory a process took")
    return Start(peak, seconds)


def seconds_of(starts: Iterable[Start]) -> float:
    """Return the median of what starts take of the processor."""
    return median(one.seconds for one in starts)


def _processor_seconds(_: object) -> float:
    return time.process_time()


if __name__ == "__main__":
    sys.exit(main())
