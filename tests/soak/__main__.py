"""Mixed load on a real server for some minutes; ends with 1 where something was not as it should be.

Run: make soak        (or python -m tests.soak [--seconds N] [--seed N])
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import run_soak

ROUND_SECONDS = 20.0


def main() -> int:
    """Run the soak test and print what came of it; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="seconds of load")
    parser.add_argument("--seed", type=int, default=0, help="what is asked is drawn from it")
    arguments = parser.parse_args()
    rounds = max(3, round(arguments.seconds / ROUND_SECONDS))
    with tempfile.TemporaryDirectory() as name:
        report = run_soak(Path(name), arguments.seconds, rounds, arguments.seed)
    print(report.summary())
    return 1 if report.counts.fault_count else 0


if __name__ == "__main__":
    sys.exit(main())
