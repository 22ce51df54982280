"""Fuzzes targets, guided by the coverage of the engine and the service.

Run: make fuzz          (or python -m tests.fuzz.coverage FOLDER SECONDS TARGET…)

The modules are instrumented once, which takes some ten seconds; then each target is fuzzed by a fork of this process.
"""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import atheris

with atheris.instrument_imports(include=["engine", "service"]):
    from engine import registry
    from engine.expression import FUNCTIONS
    from tests.fuzz.corpus import FOLDER
    from tests.fuzz.targets import TARGETS

LIMITS = ("-timeout=60", "-rss_limit_mb=4096", "-max_len=4096", "-verbosity=0", "-print_final_stats=1")
"""What libFuzzer allows an input, in seconds and MiB, and how long one may become."""


def main(folder: Path, seconds: int, names: Sequence[str]) -> None:
    """Fuzz targets one after the other; print before and after each what `tests.fuzz` reads.

    Args:
        folder: has a folder for each target.
        seconds: how long, each.
        names: the targets.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for name in names:
        print(f"== {name}, {seconds} s", flush=True)
        child = os.fork()
        if child == 0:
            _fuzz(name, folder / name, seconds)
        _, status = os.waitpid(child, 0)
        print(f"== {name} ended with {os.waitstatus_to_exitcode(status)}", flush=True)


def _fuzz(name: str, folder: Path, seconds: int) -> NoReturn:
    """Fuzz a target, and end the process; with another code than 0 on a finding.

    Args:
        name: the target.
        folder: keeps the inputs that reach something new, and those that go wrong.
        seconds: how long.
    """
    found = folder / "inputs"
    found.mkdir(parents=True, exist_ok=True)
    words = folder / "words"
    words.write_text("".join(f'"{word}"\n' for word in _words()))
    options = [f"-max_total_time={seconds}", f"-dict={words}", f"-artifact_prefix={folder}/", *LIMITS]
    atheris.Setup([sys.argv[0], *options, str(found), str(FOLDER / name)], TARGETS[name])
    atheris.Fuzz()
    raise RuntimeError("atheris did not end the process")


def _words() -> list[str]:
    """Return what chance would take long to spell: operators, functions and their arguments."""
    arguments = {argument.name for layer in registry for argument in layer.arguments}
    return sorted({layer.type for layer in registry} | set(FUNCTIONS) | {f"{name}=" for name in arguments})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
