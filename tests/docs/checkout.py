"""A checkout of the repository as the documentation supposes it: models of its own, and commands that end."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.docs.servers import Servers

ROOT = Path(__file__).parents[2]
_OURS = ("KUIPER_", "OTEL_")
_KEPT = ("KUIPER_TARGET",)
"""The processor for which the tests compile is that of the examples, too."""
_LINKED = ("Makefile", "README.md", "docs", "engine", "kuiper", "pyproject.toml", "service", "tests")

_KUIPER = """#!{python}
import os, sys
if sys.argv[1:2] == ["serve"]:
    from multiprocessing.connection import Client
    with Client({servers!r}) as servers:
        servers.send((sys.argv[1:], dict(os.environ)))
        sys.exit(servers.recv())
os.execv({python!r}, [{python!r}, "-m", "service.cli", *sys.argv[1:]])
"""
"""Replaces `kuiper`: `kuiper serve` returns when the server accepts requests."""

_MAKE = """#!/bin/sh
if [ "$1" = serve ]; then exec kuiper serve; fi
exec {make} --dry-run "$@" > /dev/null
"""
"""Replaces `make`: it serves, and only plans all else, which would install packages and take minutes."""


@dataclass(frozen=True)
class Checkout:
    """A folder in which examples run.

    Attributes:
        folder: the folder.
        environment: variables of its shell.
        servers: the servers that its `kuiper serve` starts.
    """

    folder: Path
    environment: Mapping[str, str]
    servers: Servers


@contextmanager
def checkout(folder: Path, backend: str) -> Iterator[Checkout]:
    """Make a checkout in a folder; its servers run models on a backend, and end with it."""
    for name in _LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "models", folder / "models")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    with Servers(folder, backend) as servers:
        make = shutil.which("make") or "make"
        _write_program(programs / "kuiper", _KUIPER.format(python=sys.executable, servers=servers.key))
        _write_program(programs / "make", _MAKE.format(make=make))
        _write_program(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (programs / "pnnx").symlink_to(
            Path(sys.executable).parent / "pnnx"
        )  # where the exporter is installed
        yield Checkout(folder, _environment(folder, programs), servers)


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _environment(folder: Path, programs: Path) -> dict[str, str]:
    outside = {
        name: value
        for name, value in os.environ.items()
        # pages show output as wide as it is where no terminal says otherwise
        if name != "COLUMNS" and (name in _KEPT or not name.startswith(_OURS))
    }
    found = f"{programs}{os.pathsep}{outside.get('PATH', '')}"
    return outside | {"PATH": found, "CURL_HOME": str(folder), "PYTHONPATH": str(ROOT)}
