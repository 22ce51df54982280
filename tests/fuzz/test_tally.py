"""What the fuzzers say they have tried is counted, and added to what is kept."""

from pathlib import Path

import pytest

from tests.fuzz import tally
from tests.fuzz.tally import Tally, add_to_tally, count_in, describe


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("stat::number_of_executed_units: 18988\n", 18988),
        ("2 models tried from seed 0 on, 0 kinds of findings\n", 2),
        ("stat::new_units_added:          72\n", 0),
        ("seed 2: ended with -11\n", 0),
    ],
)
def test_lines_that_show_how_many_inputs_were_tried(line: str, count: int) -> None:
    assert count_in(line) == count


def test_runs_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tally, "SAVED", tmp_path / "fuzz.json")
    assert tally.read_tally() is None
    add_to_tally({"npy": 1200, "param": 3}, ["param"])
    kept = add_to_tally({"npy": 34, "bin": 5}, [])
    assert kept.inputs == {"bin": 5, "npy": 1234, "param": 3}
    assert kept.findings == {"param": 1}
    assert tally.read_tally() == kept


def test_a_tally_is_shown_with_its_sum() -> None:
    shown = describe(Tally({"npy": 1234, "param": 3}, {"param": 1}, "2026-01-02", "2026-01-03"))
    assert "| `npy` | 1,234 | - |" in shown
    assert "| `param` | 3 | 1 |" in shown
    assert "1,237 inputs in all, from 2026-01-02 to 2026-01-03" in shown
