"""`kuiper check --json`: the report as JSON."""

import json
from pathlib import Path

import pytest

from service.commands.dispatch import run_command
from tests.engine.models import write_model

RELU = "pnnx.Input in 0 1 a #a=(2)f32\nnn.ReLU r 1 1 a b\npnnx.Output out 1 0 b"


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code = run_command(["check", *arguments, "--json"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == code
    return document


def test_report_and_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path, RELU)
    document = checked(capsys, str(tmp_path), "--backend", "both")
    report = document["report"]
    assert isinstance(report, dict)
    assert (report["runs"], report["types"]["nn.ReLU"]) == (True, 1)
    assert report["inputs"] == [{"operator": "in", "operand": "a", "shape": [2], "dtype": "f32"}]
    assert "agree with numpy" in str(document["comparison"])


def test_unsupported_operators_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path, RELU.replace("nn.ReLU", "nn.RELU"))
    document = checked(capsys, str(tmp_path))
    report = document["report"]
    assert isinstance(report, dict)
    assert document["exit_code"] == 1
    assert report["runs"] is False
    assert report["unsupported"][0]["type"] == "nn.RELU"


def test_what_cannot_be_read_has_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.param").write_text("nonsense")
    assert run_command(["check", str(tmp_path / "m.param"), "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["report"] is None
    assert "m.param" in printed.err
