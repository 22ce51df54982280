"""Exports networks of other packages, checks them, and times them beside other runtimes.

Run: make zoo        (or python -m tests.zoo [--only NAME,…] [--again] [--untimed] [--save])

Each network has a process of its own, and a file in build/zoo. Networks that have one of this commit are not measured
again unless asked. The table is printed; with --save it goes to docs/bench/zoo.json as well.
"""

import argparse
import subprocess
import sys
import time

from tests.bench.machine import machine
from tests.zoo.networks import NETWORKS
from tests.zoo.report import line, page
from tests.zoo.results import BUILD, SAVED, Row, ZooReport, to_json
from tests.zoo.runner import kept_row, measure

_PACKAGES = ("torch", "pnnx", "timm", "transformers", "ultralytics", "onnxruntime", "openvino")


def main() -> None:
    """Measure what is asked for, print the table, and save it."""
    arguments = parse()
    folder = BUILD / "untimed" if arguments.untimed else BUILD
    folder.mkdir(parents=True, exist_ok=True)
    commit = _commit()
    found = []
    for name in arguments.only:
        file = folder / f"{name}.json"
        row = None if arguments.again else kept_row(file, commit)
        if row is None:
            command = [sys.executable, "-m", "tests.zoo.measure", name, commit, str(file)]
            untried = Row(name, NETWORKS[name].package, commit)
            row = measure([*command, *["--untimed"] * arguments.untimed], untried, file, arguments.seconds)
        found.append(row)
        print(f"[{len(found)}/{len(arguments.only)}] {line(found[-1])}", flush=True)
    report = ZooReport(machine(_PACKAGES), time.strftime("%Y-%m-%d"), tuple(found))
    print("\n" + page(report))
    if arguments.save:
        SAVED.write_text(to_json(report))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=_names, default=list(NETWORKS), help="names with commas between")
    parser.add_argument(
        "--again", action="store_true", help="measure networks again that this commit has a row of"
    )
    parser.add_argument("--untimed", action="store_true", help="run no other runtimes")
    parser.add_argument("--seconds", type=float, default=900, help="limit for each network")
    parser.add_argument("--save", action="store_true", help="write docs/bench/zoo.json as well")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in NETWORKS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(unknown)}; expected some of {', '.join(NETWORKS)}"
        )
    return names


def _commit() -> str:
    """Return this project's commit, with a + where files differ from it: rows of that are not taken over."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
