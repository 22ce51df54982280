"""Which command runs, and how errors end it."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer import rich_utils

from service.commands import COMMANDS, command_line
from service.commands.dispatch import run_command
from tests.engine.models import write_model


def test_alone_it_prints_its_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 200)
    assert run_command([]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, text in COMMANDS.items():
        assert f" {name} " in shown
        assert text in shown


def test_python_m_service_is_the_same() -> None:
    done = subprocess.run([sys.executable, "-m", "service"], capture_output=True, text=True, check=True)
    assert done.stdout.lstrip().startswith("Usage: kuiper ")


def test_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kuiper ")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([name, "--help"]) == 0
    assert f"Example: kuiper {name}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["expresion"],
        ["expression"],
        ["expression", "@0", "--jsn"],
        ["--jsn"],
        *([each, "--jsn"] for each in COMMANDS),
    ],
)
def test_wrong_usage_is_reported(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("kuiper: ")
    assert printed.err.count("\n") == 1
    assert printed.err.endswith(" --help\n")
    assert not printed.out


def test_an_error_is_one_line_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["expression", "add(@0"]) == 1
    assert capsys.readouterr().err.startswith("kuiper: expected ',' or ')'")


def test_a_mistake_of_the_program_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("service.commands.check.model_files", fail)
    with pytest.raises(ZeroDivisionError):
        run_command(["check", "m"])


def test_serve_imports_nothing_that_only_other_commands_need(tmp_path: Path) -> None:
    code = (
        "import sys, service.commands.serve; from service.commands.dispatch import run_command\n"
        f"arguments = ['--models', {str(tmp_path / 'none')!r}, '--port', '0', '--log-level', 'error']\n"
        "print(run_command(['serve', *arguments]))\n"
        "print([name for name in ('rich', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "[]"]  # it came as far as loading models, of which there are none


def test_a_command_is_imported_without_looking_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def run() -> None:
        seen.append(gc.isenabled())

    def imported(name: str) -> SimpleNamespace:
        assert name == "service.commands.serve"
        seen.append(gc.isenabled())
        return SimpleNamespace(run=run, EXAMPLE="")

    monkeypatch.setattr(command_line, "import_module", imported)
    assert run_command(["serve"]) == 0
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("kuiper expr", "expression"), ("kuiper serve --po", "--port"), ("kuiper check --ba", "--backend")],
)
def test_shells_complete_commands_and_flags(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_KUIPER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert run_command([]) == 0
    assert offered in capsys.readouterr().out.split()


def test_bars_are_printed_where_only_ascii_can_be() -> None:
    model = Path(__file__).parents[3] / "models/digits"
    done = subprocess.run(
        [sys.executable, "-m", "service", "trace", str(model)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"stem.conv" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.parametrize("arguments", [["check", "models/digits"], ["expression", "add(@0,1)"]])
def test_output_that_nobody_reads_ends_a_command_in_silence(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as unread:
        done = subprocess.run(
            [sys.executable, "-m", "service", *arguments],
            stdout=unread,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", ["check", "graph", "trace", "bench", "compile", "infer"])
@pytest.mark.parametrize("source", ["net.py:Net", "timm:resnet18", "net.onnx"])
def test_the_source_of_a_model_has_to_be_exported_first(
    command: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([command, source, *(["7.png"] if command == "infer" else [])]) == 1
    expected = f"kuiper: {source}: is the source of a model; export it first: kuiper export {source}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("command", ["check", "trace", "graph"])
def test_models_are_found_by_name(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m").mkdir()
    write_model(tmp_path / "m", "pnnx.Input in 0 1 a #a=(2)f32\nnn.ReLU r 1 1 a b\npnnx.Output out 1 0 b")
    monkeypatch.setenv("KUIPER_MODELS", str(tmp_path))
    assert run_command([command, "m"]) == 0
    assert run_command([command, "n"]) == 1
    assert "kuiper: n: is not a model" in capsys.readouterr().err
