import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.zoo.results import Export, Row, row_from_json, row_to_json
from tests.zoo.runner import kept_row, measure

UNTRIED = Row("net", "timm", "abc")
FOUND = replace(UNTRIED, fixed=Export("", 1e-6, 1))


def _script(file: Path, then: str, row: Row = FOUND) -> list[str]:
    return [sys.executable, "-c", f"open({str(file)!r}, 'w').write({row_to_json(row)!r}); {then}"]


def test_a_row_is_kept_for_its_commit(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    assert kept_row(file, "abc") is None
    row = measure(_script(file, "pass"), UNTRIED, file, 30)
    assert row == replace(FOUND, is_complete=True) == row_from_json(file.read_text())
    assert kept_row(file, "abc") == row
    assert kept_row(file, "def") is None
    file.write_text(row_to_json(FOUND))
    assert kept_row(file, "abc") is None
    file.write_text(row_to_json(replace(row, commit="abc+")))
    assert kept_row(file, "abc+") is None


@pytest.mark.parametrize(
    ("then", "seconds", "problem"),
    [
        ("raise SystemExit('no such layer')", 30, "the process ended with code 1: no such layer"),
        ("import os; os.kill(os.getpid(), 9)", 30, "the process ended with code -9: it printed nothing"),
        ("import time; time.sleep(60)", 0.3, "took more than 0.3 s"),
    ],
)
def test_a_process_that_fails_loses_the_rest_of_its_row(
    tmp_path: Path, then: str, seconds: float, problem: str
) -> None:
    file = tmp_path / "net.json"
    if "sleep" in then:  # whether it writes within the limit depends on the machine
        row = measure([sys.executable, "-c", then], UNTRIED, file, seconds)
        assert row.fixed == Export(problem)
    else:
        row = measure(_script(file, then), UNTRIED, file, seconds)
        assert (row.fixed, row.dynamic) == (FOUND.fixed, Export(problem))
    assert kept_row(file, "abc") == row


def test_a_process_that_writes_nothing_has_a_row(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    file.write_text("of an earlier run")
    row = measure([sys.executable, "-c", "raise SystemExit('no torch')"], UNTRIED, file, 30)
    assert row.fixed == Export("the process ended with code 1: no torch")
