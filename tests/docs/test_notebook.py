"""The notebook runs from its first cell to its last, as Jupyter would run it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.checkout import checkout
from tests.docs.generated.notebook import NOTEBOOK

_LATE = 300.0


def cells() -> list[dict[str, Any]]:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = document["cells"]
    return found


def test_cells_run_in_order(tmp_path: Path) -> None:
    script = "import subprocess\n"
    for cell in cells():
        if cell["cell_type"] == "code":
            for line in "".join(cell["source"]).splitlines():
                # as IPython runs a line for the shell, except that a command that fails ends the run
                script += (
                    f"subprocess.run({line[1:]!r}, shell=True, check=True)\n"
                    if line.startswith("!")
                    else f"{line}\n"
                )
    with checkout(tmp_path, "numpy") as place:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=place.folder / "models",
            env=dict(place.environment),
            capture_output=True,
            text=True,
            timeout=_LATE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "[0, 2]" in done.stdout
    assert "COMPLETE" in done.stdout


def test_every_lesson_has_something_to_run() -> None:
    found = cells()
    headings = [
        place for place, cell in enumerate(found) if any(line.startswith("## ") for line in cell["source"])
    ]
    assert len(headings) == 9
    for place, after in zip(headings, [*headings[1:], len(found)], strict=True):
        assert any(cell["cell_type"] == "code" for cell in found[place:after]), found[place]["source"][0]
