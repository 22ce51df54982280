"""Models that are compiled ahead, for servers that start later."""

import json
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from engine import code_folder_in_use
from engine.compiler.emit import code_store as stores
from engine.compiler.emit import jit
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.jit import KernelCache
from engine.compiler.program import checker, verifier
from service.commands import compile as command
from service.commands.dispatch import run_command
from service.commands.failure import USAGE_ERROR
from service.config.settings import Settings
from service.repository.repository import load_repository
from tests.service.models import VECTOR, add_model


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "configure_logging", lambda level, log_format: None)


def begin_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> CodeStore:
    """Forget all code that is at hand, as a process does that begins."""
    store = CodeStore(folder)
    monkeypatch.setattr(stores, "code_store", lambda: store)
    monkeypatch.setattr("engine.compiler.program.assembler.cache", KernelCache(store))
    return store


def test_a_server_that_starts_later_compiles_and_compares_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_model(tmp_path / "models", "m", VECTOR)
    begin_process(tmp_path / "cache", monkeypatch)
    arguments = ["compile", str(tmp_path / "models"), "--max-batch-size", "4"]
    finished: list[bool] = []
    monkeypatch.setattr(command, "finish_compiling", lambda: finished.append(True))
    assert run_command(arguments) == 0
    assert finished
    assert capsys.readouterr().out.splitlines() == [
        "m, version 1: 3 programs",
        f"kept in {tmp_path / 'cache'}",
    ]

    def fail(*_: object) -> str:
        raise AssertionError

    begin_process(tmp_path / "cache", monkeypatch)
    monkeypatch.setattr(jit, "_write", fail)
    monkeypatch.setattr(checker, verifier.verify.__name__, fail)
    loaded = load_repository(Settings(models=tmp_path / "models", max_batch_size=4))
    verification = loaded.find("m").graph.verification
    assert (verification.checked, verification.recalled, verification.refused_count) == (0, 3, 0)


def test_json_lists_models_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_model(tmp_path / "models", "m", VECTOR)
    begin_process(tmp_path / "cache", monkeypatch)
    assert run_command(["compile", str(tmp_path / "models"), "--max-batch-size", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "models": [{"name": "m", "version": "1", "programs": 3, "refused": 0}],
        "kept_in": str(tmp_path / "cache"),
    }


def test_a_broken_model_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_process(tmp_path / "cache", monkeypatch)
    (tmp_path / "models" / "m").mkdir(parents=True)
    (tmp_path / "models" / "m" / "m.pnnx.param").write_text("nonsense")
    assert run_command(["compile", str(tmp_path / "models")]) == 1
    assert "m is broken" in capsys.readouterr().err


def test_without_a_model_nothing_is_said_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_process(tmp_path / "cache", monkeypatch)
    assert run_command(["compile", "--models", str(tmp_path / "none")]) == 1
    found = capsys.readouterr()
    assert (found.out, "there is no folder" in found.err) == ("", True)


def test_a_folder_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_model(tmp_path / "models", "m", VECTOR)
    (tmp_path / "file").write_text("")
    begin_process(tmp_path / "file" / "cache", monkeypatch)
    assert run_command(["compile", str(tmp_path / "models")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_it_is_reported_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_process(tmp_path, monkeypatch)
    monkeypatch.setattr(stores, "code_store", lambda: CodeStore(None))
    assert code_folder_in_use() is None
    assert run_command(["compile", str(tmp_path)]) == 1
    assert "nothing would be kept" in capsys.readouterr().err


def test_a_wrong_setting_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compile", "--threads", "many"]) == USAGE_ERROR
    assert "threads" in capsys.readouterr().err


def test_byte_code_is_written_even_if_python_is_set_to_write_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = tmp_path / "module.py"
    source.write_text("value = 1")
    command.compile_modules([str(tmp_path), str(tmp_path / "missing")])
    assert Path(cache_from_source(str(source))).exists()
    assert capsys.readouterr().out == ""
