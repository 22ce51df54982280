import json
from pathlib import Path

import pytest

from engine.compiler.emit.target import host_target
from service.commands import doctor
from service.commands.dispatch import run_command


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUIPER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUIPER_BACKEND", raising=False)


def findings(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}


def test_it_reports_processor_cores_and_packages(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["doctor", "--json"])
    found = findings(capsys)
    assert "vectors of" in found["processor"]["found"]
    assert "on" in found["processes, workers, threads"]["found"]
    assert "numpy" in found["packages"]["found"]
    run_command(["doctor"])
    assert "processor" in capsys.readouterr().out


def test_what_is_missing_is_reported_with_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = {name: "1" for name in doctor._NEEDED if name != "orjson"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    assert run_command(["doctor", "--json"]) == 1
    found = findings(capsys)
    assert (found["orjson"]["state"], found["torch"]["state"]) == ("bad", "optional")
    assert found["torch"]["cure"] == "pip install -e '.[export]'"


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("KUIPER_BACKEND", "numpy", "compiler"),
        ("KUIPER_WORKERS", "many", "settings"),
        ("KUIPER_TARGET", "mmx", "compiler"),
    ],
)
def test_what_slows_or_stops_a_server_changes_the_exit_code(
    variable: str, value: str, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "KUIPER_TARGET":
        host_target.cache_clear()
    assert run_command(["doctor", "--json"]) == 1
    host_target.cache_clear()
    assert findings(capsys)[what]["state"] == "bad"


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        (['cuda-toolkit==13; platform_system == "Linux"', "sympy"], "2, with gigabytes of GPU libraries"),
        (["sympy"], "2, without GPU libraries"),
        (None, "2, without GPU libraries"),
    ],
)
def test_the_wheel_of_pytorch_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    requires: list[str] | None,
    found: str,
) -> None:
    monkeypatch.setattr(doctor, "_version", lambda _: "2")
    monkeypatch.setattr(doctor, "requires", lambda _: requires)
    run_command(["doctor", "--json"])
    assert findings(capsys)["torch"]["found"].startswith(found)
