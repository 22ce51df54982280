"""Makes each attack on a server of its own, and prints what it cost whom; ends with 1 where a server gave in.

Run: make attack        (or python -m tests.attack [--full] [--only NAME] [--save])
"""

import argparse
import datetime
import sys

from tests.attack.attack import Scale
from tests.attack.attacks import ATTACKS
from tests.attack.measurement import measure
from tests.attack.report import markdown
from tests.attack.results import SAVED, AttackReport, result_of, to_json
from tests.bench.machine import machine


def main() -> int:
    """Run the attacks and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="the sizes that were found to hurt; they take minutes"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only attacks with this text in their names"
    )
    parser.add_argument("--save", action="store_true", help=f"write what came of all attacks to {SAVED}")
    arguments = parser.parse_args()
    if arguments.save and arguments.only:
        parser.error("--save keeps what came of all attacks: it goes without --only")
    scale = Scale.FULL if arguments.full else Scale.USUAL
    results = []
    for attack in ATTACKS:
        if arguments.only in attack.name:
            print(f"{attack.name} …", file=sys.stderr, flush=True)
            results.append(result_of(measure(attack, scale)))
    print(markdown(results))
    if arguments.save:
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        SAVED.write_text(to_json(AttackReport(machine(), today, scale.name.lower(), tuple(results))))
    return int(any(result.faults for result in results))


if __name__ == "__main__":
    sys.exit(main())
