"""Fuzzes every target, and changed models, each for its share of the time; ends with 1 where something was found.

Run: make fuzz          (or python -m tests.fuzz [--seconds N] [--only TARGET] [--first SEED] [--save] [--replay FILE])
"""

import argparse
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.tally import SAVED, add_to_tally, count_in, describe
from tests.fuzz.targets import TARGETS

BUILD = Path("build/fuzz")
"""Folder of what a run finds, by target; git does not see it."""
MODELS = "models"
_BEGUN = re.compile(r"== (\w+), \d+ s$")
_ENDED = re.compile(r"== (\w+) ended with (-?\d+)$")
"""What `tests.fuzz.coverage` says before and after a target."""


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
    tried, failed = _fuzz([name for name in names if name != MODELS], share)
    if MODELS in names:
        print(f"== {MODELS}, {share} s", flush=True)
        tried[MODELS], is_sound = _try_models(arguments.first, share)
        failed += [] if is_sound else [MODELS]
    print(f"{sum(tried.values()):,} inputs tried")
    print(f"found something in: {', '.join(failed)}" if failed else "found nothing")
    if arguments.save:
        print(describe(add_to_tally(tried, failed)))
    return int(bool(failed))


def _fuzz(names: Sequence[str], seconds: int) -> tuple[dict[str, int], list[str]]:
    """Fuzz targets; returns how many inputs were tried of each, and those in which something was found."""
    tried = dict.fromkeys(names, 0)
    if not names:
        return tried, []
    if importlib.util.find_spec("atheris") is None:
        print("left out: atheris is not installed; pip install -e '.[fuzz]'")
        return tried, []
    for name in names:
        (BUILD / name).mkdir(parents=True, exist_ok=True)
    name, sound = "", set()
    for line in _lines("tests.fuzz.coverage", str(BUILD), str(seconds), *names):
        if begun := _BEGUN.match(line):
            name = begun[1]
        elif ended := _ENDED.match(line):
            sound |= {name} if ended[2] == "0" else set()
        else:
            tried[name] = tried.get(name, 0) + count_in(line)
    return tried, [name for name in names if name not in sound]


def _try_models(first: int, seconds: int) -> tuple[int, bool]:
    """Try changed models; returns how many, and whether nothing was found."""
    lines = list(_lines("tests.fuzz.models", "--first", str(first), "--seconds", str(seconds)))
    return sum(map(count_in, lines)), any(line.endswith(" 0 kinds of findings\n") for line in lines)


def _lines(module: str, *arguments: str) -> Iterator[str]:
    """Run a module, print what it says but for the names of instrumented modules, and yield that by the line."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if not line.startswith("INFO: Instrumenting"):
                print(line, end="", flush=True)
                yield line


if __name__ == "__main__":
    sys.exit(main())
