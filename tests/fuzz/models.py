"""Builds, plans, compiles and runs changed models, in a process that may die of it; reports each kind of finding once.

Run: make fuzz          (or python -m tests.fuzz.models --first SEED --count N --seconds S)
"""

import argparse
import faulthandler
import json
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.fuzz.mutation import mutate
from tests.fuzz.trial import Finding, try_graph

SLOW_SECONDS = 10.0
"""Seconds of the processor that a model, tiny as it is, takes at most."""
HANG_SECONDS = 300
"""Seconds after which a process that says nothing is ended."""


def try_seed(seed: int, folder: Path) -> Finding | None:
    """Try the model that a seed names."""
    started = time.process_time()
    origin, graph, inputs = mutate(Random(seed))
    finding = try_graph(graph, inputs, folder)
    seconds = time.process_time() - started
    if finding is None and seconds > SLOW_SECONDS:
        return Finding("slow", f"{origin}: {seconds:.1f} s of the processor")
    return finding


def work(first: int, count: int) -> None:
    """Try models one after the other; print a line before each, and one for each finding."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            print(f"seed {seed}", flush=True)
            finding = try_seed(seed, Path(folder))
            if finding is not None:
                print(f"finding {json.dumps([finding.kind, finding.detail])}", flush=True)
    print("done", flush=True)


def hunt(first: int, count: int, seconds: float) -> Iterator[tuple[int, Finding | None]]:
    """Have models tried in a process of their own, a new one where it dies.

    Yields:
        The seed of each model when it is tried, with None, and again with what was found.
    """
    until, seed, end = time.monotonic() + seconds, first, first + count
    while seed < end and time.monotonic() < until:
        command = [sys.executable, "-m", "tests.fuzz.models", "--work", str(seed), str(end - seed)]
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker,
        ):
            is_done = False
            for line in worker.stdout or ():
                word, _, rest = line.strip().partition(" ")
                is_done = word == "done" or time.monotonic() >= until
                if word == "seed":
                    seed = int(rest)
                    yield seed, None
                elif word == "finding":
                    yield seed, Finding(*json.loads(rest))
                if is_done:
                    break
            if is_done:
                worker.kill()
            worker.wait()
            if not is_done:
                errors.seek(0)
                yield seed, Finding(f"ended with {worker.returncode}", errors.read())
        seed += 1


def main() -> int:
    """Try models; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first model")
    parser.add_argument("--count", type=int, default=10**9, help="how many at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long at most")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return 0
    known: set[str] = set()
    tried = 0
    for seed, finding in hunt(arguments.first, arguments.count, arguments.seconds):
        if finding is None:
            tried += 1
        elif finding.kind not in known:
            known.add(finding.kind)
            print(f"seed {seed}: {finding.kind}\n{finding.detail}", flush=True)
    print(f"{tried} models tried from seed {arguments.first} on, {len(known)} kinds of findings")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
