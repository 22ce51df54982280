import json
from pathlib import Path

import pytest

from service.commands.dispatch import run_command
from tests.service.models import DIGIT, VECTOR, add_model

RESHAPE = """
pnnx.Input     in      0 1 0 #0=(1,10)f32
Tensor.reshape reshape 1 1 0 1 shape=(1,10) #0=(1,10)f32
pnnx.Output    out     1 0 1
"""
"""Takes ten numbers, and no more."""
QUICK = ["--seconds", "0.01", "--threads", "1"]


def test_each_batch_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(add_model(tmp_path, "vector", VECTOR))
    assert run_command(["bench", model, "--batch", "1,4", "--shape", "1,3", *QUICK, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [(one["runtime"], one["threads"], one["batch"]) for one in results] == [
        ("kuiper", 1, 1),
        ("kuiper", 1, 4),
    ]
    for one in results:
        assert one["p90_ms"] >= one["median_ms"] > 0
        assert one["rows_per_second"] == pytest.approx(one["batch"] / one["median_ms"] * 1e3)
        assert one["runs"] >= 15


def test_table_has_a_line_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(add_model(tmp_path, "digit", DIGIT))
    assert run_command(["bench", model, "--batch", "1", *QUICK]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["runtime", "kuiper"]


@pytest.mark.parametrize(
    ("flags", "code", "problem"),
    [
        (["--batch", "2"], 1, "the model does not take so many rows"),
        (["--batch", "0"], 2, "--batch 0: expected whole numbers"),
        (["--threads", "x"], 2, "--threads x: expected whole numbers"),
        (["--onnx", "none.onnx", "--batch", "1"], 1, "onnx"),
    ],
)
def test_mistakes_are_reported(
    flags: list[str], code: int, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["bench", str(add_model(tmp_path, "m", RESHAPE)), "--seconds", "0.01", *flags]) == code
    assert problem in capsys.readouterr().err
