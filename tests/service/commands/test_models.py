import json
from pathlib import Path

import pytest

from service.commands.dispatch import run_command
from tests.service.models import UNKNOWN_LAYER, VECTOR, add_model, add_models, add_versions
from tests.service.server.process import ServerProcess


def test_models_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_versions(add_models(tmp_path), "many", {"2": VECTOR, "10": VECTOR})
    assert run_command(["models", str(tmp_path), "--json"]) == 0
    listed = {model["name"]: model for model in json.loads(capsys.readouterr().out)}
    assert set(listed) == {"digit", "many", "pair", "vector"}
    assert (listed["many"]["version"], listed["many"]["versions"]) == ("10", ["2", "10"])
    assert listed["digit"]["task"] == "classification"
    assert [port["shape"] for port in listed["pair"]["inputs"]] == [[2], [2]]


def test_a_broken_model_is_reported_and_changes_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_model(add_models(tmp_path), "broken", UNKNOWN_LAYER)
    assert run_command(["models", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "broken: " in shown
    assert "nn.RELU" in shown
    assert "?x3 f32" in shown


def test_models_of_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--models", str(add_models(tmp_path)), "--no-warm-up")
    (tmp_path / "key").write_text("one-key-for-this-test\n")
    with ServerProcess(*flags, environment={"KUIPER_API_KEYS": "one-key-for-this-test"}) as server:
        assert (
            run_command(["models", "--url", server.url, "--key-file", str(tmp_path / "key"), "--json"]) == 0
        )
        listed = json.loads(capsys.readouterr().out)
        assert [model["name"] for model in listed] == ["digit", "pair", "vector"]
        assert run_command(["models", server.url]) == 1
        assert "key_needed" in capsys.readouterr().err


def test_no_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["models", str(tmp_path / "none")]) == 1
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"schl\xc3\xbcssel", b"\xff\xfe", b"one\ntwo"])
def test_a_file_without_a_key_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    assert run_command(["models", "--url", "http://127.0.0.1:1", "--key-file", str(file)]) == 1
    assert capsys.readouterr().err == f"kuiper: {file}: holds no API key; expected one line of ASCII\n"
