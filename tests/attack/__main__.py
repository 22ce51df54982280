"""Makes each attack on a server of its own, and prints what it cost whom; ends with 1 where a server gave in.

Run: make attack        (or python -m tests.attack [--full] [--only NAME])
"""

import argparse
import sys

from tests.attack.attack import Scale
from tests.attack.attacks import ATTACKS
from tests.attack.measurement import measure
from tests.attack.report import markdown


def main() -> int:
    """Run the attacks and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="the sizes that were found to hurt; they take minutes"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only attacks with this text in their names"
    )
    arguments = parser.parse_args()
    scale = Scale.FULL if arguments.full else Scale.USUAL
    measurements = []
    for attack in ATTACKS:
        if arguments.only in attack.name:
            print(f"{attack.name} …", file=sys.stderr, flush=True)
            measurements.append(measure(attack, scale))
    print(markdown(measurements))
    return int(any(measurement.faults for measurement in measurements))


if __name__ == "__main__":
    sys.exit(main())
