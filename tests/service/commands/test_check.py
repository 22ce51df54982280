from pathlib import Path

import pytest

from service.commands.dispatch import run_command
from tests.engine.models import write_model


def test_check_looks_at_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path, "pnnx.Input in 0 1 a #a=(2)f32\nnn.ReLU r 1 1 a b\npnnx.Output out 1 0 b")
    assert run_command(["check", str(tmp_path)]) == 0
    assert "1  nn.ReLU" in capsys.readouterr().out
    assert run_command(["check", str(tmp_path / "none.param")]) == 1
