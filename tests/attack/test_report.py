"""What came of attacks is kept as JSON, and shown as it was."""

from collections import Counter
from pathlib import Path

import pytest

from tests.attack import __main__ as command
from tests.attack.attack import Attack, Scale, Target
from tests.attack.measurement import Measurement
from tests.attack.report import markdown, page
from tests.attack.results import AttackReport, from_json, result_of, to_json
from tests.attack.witness import Observation


def nothing(target: Target, size: int) -> None:
    """Do nothing: what is shown is made up here."""


ATTACK = Attack("period", "visits", nothing, (1, 20_000, 3))


def measured(**values: object) -> Measurement:
    known: dict[str, object] = {
        "sent": 1_250_000,
        "rest": 200 << 20,
        "peak": 300 << 20,
        "after": 210 << 20,
        "idle": Observation([0.004] * 100, Counter({"200": 100})),
        "livez": Observation([0.001] * 98 + [0.05] * 2, Counter({"200": 100})),
        "honest": Observation([0.006] * 100, Counter({"200": 100})),
        "replies": Counter({"503 queue_full": 1200, "200": 3}),
    }
    return Measurement(ATTACK, 20_000, **(known | values))  # type: ignore[arg-type]  # one dict of all


def report(*measurements: Measurement) -> AttackReport:
    machine = {"processor": "P", "cores": "2", "instructions": "i", "versions": "Python 3"}
    return AttackReport(machine, "2026-01-02", "usual", tuple(map(result_of, measurements)))


def test_a_row_shows_sizes_memory_latency_and_responses() -> None:
    row = markdown([result_of(measured())]).splitlines()[-1]
    assert row == (
        "| period | 20,000 visits | 210/315/220 | 1/50 | 4/6 | 3x 200, 1,200x 503 queue_full | - |"
    )


def test_what_is_exceeded_and_refused_is_shown() -> None:
    slow = Observation([0.5] * 9, Counter({"200": 8, "none": 1}))
    row = markdown([result_of(measured(livez=slow, honest=slow, peak=900 << 20, after=400 << 20))])
    assert row.endswith("| livez; honest; refused; peak; kept |")
    assert "4/500 (1 of 9 refused)" in row
    row = markdown([result_of(measured(faults=["the server ended with -11"], replies=Counter()))])
    assert row.endswith("| nothing | the server ended with -11 |")


def test_what_was_not_asked_is_not_a_number_in_json() -> None:
    kept = report(measured(idle=Observation()))
    assert kept.results[0].idle.p99 is None
    assert from_json(to_json(kept)) == kept
    assert " -/6 " in markdown(kept.results)


def test_the_page_shows_machine_day_and_how_many_failed() -> None:
    shown = page(report(measured(), measured(faults=["x"])))
    assert shown.startswith("Sizes: usual. P, 2 cores, ")
    assert "; 2026-01-02 (Python 3). 1 of 2 attacks exceeded a limit.\n\n| attack | size |" in shown
    assert "None of 1 attacks exceeded a limit." in page(report(measured()))


def test_the_command_saves_all_attacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scales: list[Scale] = []

    def measure(attack: Attack, scale: Scale) -> Measurement:
        assert attack is ATTACK
        scales.append(scale)
        return measured()

    monkeypatch.setattr(command, "ATTACKS", (ATTACK,))
    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "SAVED", tmp_path / "attacks.json")
    monkeypatch.setattr("sys.argv", ["attack", "--save"])
    assert command.main() == 0
    kept = from_json((tmp_path / "attacks.json").read_text())
    assert [result.attack for result in kept.results] == ["period"]
    assert (kept.scale, scales) == ("usual", [Scale.USUAL])
    assert "| period |" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["attack", "--save", "--only", "pat"])
    with pytest.raises(SystemExit):
        command.main()
