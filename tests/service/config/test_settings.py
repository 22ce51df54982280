from dataclasses import replace
from pathlib import Path

import pytest

from service.config.limits import Limits
from service.config.machine import Machine
from service.config.setting_file import SettingsError
from service.config.settings import Settings, describe_settings, load_settings


def write(folder: Path, text: str) -> Path:
    path = folder / "kuiper.toml"
    path.write_text(text)
    return path


def test_defaults_hold_where_nothing_is_said() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.models) == ("127.0.0.1", 8000, Path("models"))


def test_flag_beats_environment_beats_file_beats_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "port = 1\nworkers = 1\nqueue_size = 1\n")
    monkeypatch.setenv("KUIPER_PORT", "2")
    monkeypatch.setenv("KUIPER_WORKERS", "2")
    settings = load_settings({"port": "3", "config": str(path)})
    assert (settings.port, settings.workers, settings.queue_size, settings.timeout) == (3, 2, 1, 30.0)


def test_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_CONFIG", str(write(tmp_path, 'log_format = "json"\nskip_broken = true\n')))
    settings = load_settings()
    assert settings.log_format == "json"
    assert settings.skip_broken


def test_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_PORT", "")
    assert load_settings().port == 8000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"port": "http"}, "port: input should be a valid integer, .*got 'http'"),
        ({"port": "65536"}, "port: input should be less than or equal to 65535, got '65536'"),
        ({"queue_size": "-1"}, "queue_size: input should be greater than or equal to 0"),
        ({"timeout": "0"}, "timeout: input should be greater than 0"),
        ({"timeout": "nan"}, "timeout: input should be"),
        ({"log_format": "xml"}, "log_format: input should be 'text' or 'json', got 'xml'"),
        ({"wrokers": "2"}, "wrokers: unknown setting"),
        ({"port": "x", "workers": "y"}, "port: .*; workers: "),
    ],
)
def test_bad_values_are_named(flags: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(flags)


def test_unknown_key_in_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="prot: unknown setting"):
        load_settings({"config": write(tmp_path, "prot = 1\n")})


def test_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"config: cannot read .*kuiper.toml: .*line 1"):
        load_settings({"config": write(tmp_path, "port 1\n")})


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"config: cannot read .*none.toml: No such file"):
        load_settings({"config": tmp_path / "none.toml"})


def test_workers_and_threads_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(8, "", None, "")
    monkeypatch.setattr("service.config.settings.this_machine", lambda: machine)
    assert (Settings().worker_count, Settings().thread_count) == (8, 1)
    assert (Settings(workers=3).worker_count, Settings(workers=3).thread_count) == (3, 2)
    assert Settings(workers=16).thread_count == 1
    assert Settings(workers=2, threads=7).thread_count == 7


def test_limits_are_those_of_the_settings() -> None:
    assert Settings(max_body_bytes=1).limits == replace(Limits(), body_bytes=1)
    more = Settings(max_body_bytes=1 << 30)
    assert more.limits == Limits(1 << 30, 1 << 28, 1 << 30, 1 << 28, 1 << 30)
    assert more.unsent_bytes == 1 << 30


def test_every_setting_is_described() -> None:
    for doc in describe_settings():
        assert doc.text, doc.name
