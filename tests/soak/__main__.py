"""Mixed load on a real server for some time; ends with 1 where something was not as it should be.

Run: make soak        (or python -m tests.soak [--seconds N] [--seed N] [--crashes N] [--reloads N])

A checkpoint is printed each minute, as a line of JSON. From an hour on, the server is killed and started again 15 times
afterwards, and a model is loaded again under load 100 times.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.checkpoint import CheckpointLog
from tests.soak.crashes import run_crashes
from tests.soak.reloads import run_reloads
from tests.soak.soak import run_soak

ROUND_SECONDS = 20.0
CHECKPOINT_SECONDS = 60.0
LONG_SECONDS = 3600.0
"""Seconds from which on a soak is one of hours."""
CRASHES, RELOADS = 15, 100
"""How often a server is killed, and a model loaded again, in a soak of hours."""


def main() -> int:
    """Run the soak test and print what came of it; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="seconds of mixed load; 0: none")
    parser.add_argument("--seed", type=int, default=0, help="what is asked is drawn from it")
    parser.add_argument("--crashes", type=int, help="how often a server is killed and started again")
    parser.add_argument("--reloads", type=int, help="how often a model is loaded again under load")
    arguments = parser.parse_args()
    is_long = arguments.seconds >= LONG_SECONDS
    crashes = (CRASHES if is_long else 0) if arguments.crashes is None else arguments.crashes
    reloads = (RELOADS if is_long else 0) if arguments.reloads is None else arguments.reloads
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        if arguments.seconds:
            faults += _mixed_load(Path(name), arguments.seconds, arguments.seed)
        if crashes:
            faults += run_crashes(Path(name), crashes, arguments.seed, sys.stdout)
        if reloads:
            faults += run_reloads(reloads, sys.stdout)
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


def _mixed_load(folder: Path, seconds: float, seed: int) -> list[str]:
    rounds = max(3, round(seconds / ROUND_SECONDS))
    log = CheckpointLog(sys.stdout, CHECKPOINT_SECONDS)
    report = run_soak(folder, seconds, rounds, seed, log=log)
    print(report.summary())
    return [f"{report.counts.fault_count} faults under mixed load"] if report.counts.fault_count else []


if __name__ == "__main__":
    sys.exit(main())
