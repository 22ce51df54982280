"""Measures each network in a process of its own, with a time limit, and keeps its row."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.zoo.results import Row, row_from_json, row_to_json


def kept_row(file: Path, commit: str) -> Row | None:
    """Return the row that an earlier run of the same commit measured to its end; None where there is none.

    A commit with a + has files that differ from it, which may be others now.
    """
    if commit.endswith("+") or not file.exists():
        return None
    row = row_from_json(file.read_text())
    return row if row.commit == commit and row.is_complete else None


def measure(command: Sequence[str], row: Row, file: Path, seconds: float) -> Row:
    """Run a command that writes a row to a file, and return the row.

    Args:
        command: writes the row again each time that it knows more.
        row: of a network of which nothing is known.
        file: where the row is kept; what the command prints is beside it.
        seconds: limit for the command.
    """
    file.unlink(missing_ok=True)
    log = file.with_suffix(".log")
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            code = process.wait(seconds)
            problem = f"the process ended with code {code}: {_last_line(log)}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"took more than {seconds:g} s"
        finally:
            process.kill()
            process.wait()
    found = row_from_json(file.read_text()) if file.exists() else row
    found = found.failed(problem) if problem else replace(found, is_complete=True)
    file.write_text(row_to_json(found))
    return found


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
