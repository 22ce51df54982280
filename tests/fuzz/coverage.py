"""Fuzzes one target, guided by the coverage of the engine and the service; ends with another code than 0 on a finding.

Run: make fuzz          (or python -m tests.fuzz.coverage TARGET FOLDER SECONDS)
"""

import logging
import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["engine", "service"]):
    from engine import registry
    from engine.expression import FUNCTIONS
    from tests.fuzz.corpus import FOLDER
    from tests.fuzz.targets import TARGETS

LIMITS = ("-timeout=60", "-rss_limit_mb=4096", "-max_len=4096", "-verbosity=0", "-print_final_stats=1")
"""What libFuzzer allows an input, in seconds and MiB, and how long one may become."""


def main(name: str, folder: Path, seconds: int) -> None:
    """Fuzz a target.

    Args:
        name: the target.
        folder: keeps the inputs that reach something new, and those that go wrong.
        seconds: how long.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    found = folder / "inputs"
    found.mkdir(parents=True, exist_ok=True)
    words = folder / "words"
    words.write_text("".join(f'"{word}"\n' for word in _words()))
    options = [f"-max_total_time={seconds}", f"-dict={words}", f"-artifact_prefix={folder}/", *LIMITS]
    atheris.Setup([sys.argv[0], *options, str(found), str(FOLDER / name)], TARGETS[name])
    atheris.Fuzz()


def _words() -> list[str]:
    """Return what chance would take long to spell: operators, functions and their arguments."""
    arguments = {argument.name for layer in registry for argument in layer.arguments}
    return sorted({layer.type for layer in registry} | set(FUNCTIONS) | {f"{name}=" for name in arguments})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
