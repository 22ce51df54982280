"""`kuiper export`: its arguments, what it prints, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.commands.dispatch import run_command
from service.export import ExportError, ExportReport
from tests.service.export.stand_in import make_exporter, names_in, write_files


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Returns a list that gets the arguments of each export; none is made."""
    calls: list[dict[str, Any]] = []

    def export(source: str, folder: Path, **options: Any) -> ExportReport:
        calls.append({"source": source, "folder": folder, **options})
        return ExportReport(source, "PyTorch", "1", folder, ("model.toml",), "raw", 3, (), ("mind this",))

    monkeypatch.setattr("service.commands.export.export", export)
    return calls


def test_a_model_is_called_after_its_source(asked: list[dict[str, Any]]) -> None:
    assert run_command(["export", "a/net.traced.pt", "-i", "?,3,8,8", "--input", "1,4:i64"]) == 0
    assert run_command(["export", "pack.age:make_net", "--models", "m"]) == 0
    assert run_command(["export", "net.onnx", "--name", "other", "--force", "--time-limit", "5"]) == 0
    assert [call["folder"] for call in asked] == [
        Path("models/net"),
        Path("m/make_net"),
        Path("models/other"),
    ]
    assert [str(spec) for spec in asked[0]["inputs"]] == ["(?,3,8,8)f32", "(1,4)i64"]
    assert (asked[2]["force"], asked[2]["seconds"]) == (True, 5)


def test_the_report_is_printed(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "net.pt"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "source    net.pt",
        "exporter  pnnx 1, 3 operators",
        "note      mind this",
        "written   models/net: model.toml; task raw",
    ]
    assert run_command(["export", "net.pt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == "models/net"
    assert len(asked) == 2


def test_what_goes_wrong_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def export(*_: Any, **__: Any) -> None:
        raise ExportError("it differs")

    monkeypatch.setattr("service.commands.export.export", export)
    assert run_command(["export", "net.pt"]) == 1
    assert capsys.readouterr().err == "kuiper: it differs\n"


def test_a_shape_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "net.pt", "--input", "1,x"]) == 2
    assert "'x' is not a size" in capsys.readouterr().err


# under nohup and the like SIGHUP is ignored, and an export then leaves it so
_SCRIPT = """
import signal
import sys
from pathlib import Path
import service.export.conversion as conversion
import service.export.exporter as exporter
from service.cli import main
from tests.service.export.stand_in import LinearSource
signal.signal(signal.SIGHUP, signal.SIG_DFL)
exporter.find_exporter = lambda: Path(sys.argv[1])
conversion.open_source = lambda _: LinearSource()
sys.exit(main(["export", "net.pt", "--input", "1,4", "--models", sys.argv[2]]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_exporter_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    tools, temporary, pipe = tmp_path / "tools", tmp_path / "temporary", tmp_path / "alive"
    tools.mkdir()
    temporary.mkdir()
    os.mkfifo(pipe)
    write_files(tools)
    exporter = make_exporter(
        tools, f"held = open({str(pipe)!r}, 'w'); held.write('x'); held.flush(); time.sleep(600)"
    )
    command = [sys.executable, "-c", _SCRIPT, str(exporter), str(tmp_path / "models")]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        with pipe.open() as alive:  # opens once the exporter runs
            assert alive.read(1) == "x"
            process.send_signal(number)
            assert alive.read(1) == ""  # ends with the exporter
        said = process.communicate()[1]
    assert process.returncode == 128 + number
    assert said.endswith(f"… exporting with pnnx\nkuiper: stopped by {number.name}\n")
    assert names_in(temporary) == names_in(tmp_path / "models") == []


def test_the_exporter_ends_with_an_export_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    write_files(tmp_path)
    exporter = make_exporter(
        tmp_path, f"held = open({str(pipe)!r}, 'w'); held.write('x'); held.flush(); time.sleep(600)"
    )
    command = [sys.executable, "-c", _SCRIPT, str(exporter), str(tmp_path / "models")]
    with (
        subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}) as process,
        pipe.open() as alive,
    ):
        assert alive.read(1) == "x"
        process.kill()
        assert alive.read(1) == ""  # ends with the exporter


def test_a_preset_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["export", "net.pt", "--preset", "nope"]) == 2
    assert capsys.readouterr().err.startswith("kuiper: there is no preset 'nope'; expected imagenet, ")
