"""Fuzzes every target, and changed models, each for its share of the time; ends with 1 where something was found.

Run: make fuzz          (or python -m tests.fuzz [--seconds N] [--only TARGET] [--first SEED] [--save] [--replay FILE])
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

from tests.fuzz.tally import SAVED, add_to_tally, count_in, describe
from tests.fuzz.targets import TARGETS

BUILD = Path("build/fuzz")
"""Folder of what a run finds, by target; git does not see it."""
MODELS = "models"


def main() -> int:
    """Fuzz; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=180, help="how long in all")
    parser.add_argument("--only", choices=[*TARGETS, MODELS], help="a single target")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first changed model")
    parser.add_argument("--save", action="store_true", help=f"add what was tried to the sums in {SAVED}")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try one input of the target, and end")
    arguments = parser.parse_args()
    if arguments.replay:
        TARGETS[arguments.only](arguments.replay.read_bytes())
        return 0
    names = [arguments.only] if arguments.only else [*TARGETS, MODELS]
    share = max(1, arguments.seconds // len(names))
    tried: dict[str, int] = {}
    failed = []
    for name in names:
        tried[name], is_sound = _fuzz(name, share, arguments.first)
        failed += [] if is_sound else [name]
    print(f"{sum(tried.values()):,} inputs tried")
    print(f"found something in: {', '.join(failed)}" if failed else "found nothing")
    if arguments.save:
        print(describe(add_to_tally(tried, failed)))
    return int(bool(failed))


def _fuzz(name: str, seconds: int, first: int) -> tuple[int, bool]:
    """Fuzz a target in a process of its own; returns how many inputs were tried, and whether nothing was found."""
    print(f"== {name}, {seconds} s", flush=True)
    if name == MODELS:
        command = ["tests.fuzz.models", "--first", str(first), "--seconds", str(seconds)]
    elif importlib.util.find_spec("atheris") is None:
        print("left out: atheris is not installed; pip install -e '.[fuzz]'")
        return 0, True
    else:
        folder = BUILD / name
        folder.mkdir(parents=True, exist_ok=True)
        command = ["tests.fuzz.coverage", name, str(folder), str(seconds)]
    return _run([sys.executable, "-m", *command])


def _run(command: list[str]) -> tuple[int, bool]:
    """Run a command and print what it says, but for the names of instrumented modules; returns as `_fuzz` does."""
    tried = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            tried += count_in(line)
            if not line.startswith("INFO: Instrumenting"):
                print(line, end="", flush=True)
    return tried, process.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
