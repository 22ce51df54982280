from pathlib import Path

import pytest
from fastapi import FastAPI
from typer import rich_utils

from service.commands import serve
from service.commands.dispatch import run_command
from service.commands.failure import USAGE_ERROR
from service.config.fitting import describe_fit
from service.config.machine import read_machine
from service.config.settings import COMMON, PANELS, Settings, describe_settings
from service.services import services_of
from tests.service.config.cgroup_trees import v2


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Settings that the command would have served with."""
    calls: list[Settings] = []

    def run(app: FastAPI, settings: Settings) -> int:
        assert services_of(app).settings is settings
        calls.append(settings)
        return 0

    monkeypatch.setattr(serve, "run_server", run)
    monkeypatch.setattr(serve, "configure_logging", lambda *given: None)
    return calls


def shown_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 400)
    assert run_command(["serve", "--help"]) == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help_shows_every_flag_with_its_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown_help(capsys, monkeypatch)
    for doc in describe_settings():
        if not doc.flag:
            assert doc.variable in text
            continue
        assert f"{doc.text} [default: {doc.default}]" if doc.default else doc.text in text
        assert doc.flag in text


def test_help_has_the_settings_that_matter_most_before_those_in_panels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown_help(capsys, monkeypatch)
    places = [text.index(f" --{name.replace('_', '-')} ") for name in COMMON]
    assert places == sorted(places)
    panels = [text.index(f"─ {panel} ─") for panel in ("Options", *PANELS)]
    assert panels == sorted(panels)
    assert panels[0] < places[0] < places[-1] < panels[1]


def test_every_setting_has_one_place() -> None:
    assert len(COMMON) == 12
    assert sorted([*COMMON, *(name for names in PANELS.values() for name in names)]) == sorted(
        Settings.model_fields
    )


def test_help_names_the_unit_of_a_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--timeout SECONDS" in shown_help(capsys, monkeypatch)


def test_flags_become_settings(served: list[Settings], tmp_path: Path) -> None:
    code = run_command(["serve", "--models", str(tmp_path), "--port", "0", "--skip-broken", "--no-warm-up"])
    assert code == 0
    assert (served[0].models, served[0].port) == (tmp_path, 0)
    assert (served[0].skip_broken, served[0].warm_up) == (True, False)


def test_flags_that_are_not_given_leave_the_environment_alone(
    served: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUIPER_WORKERS", "3")
    monkeypatch.setenv("KUIPER_WARM_UP", "false")
    run_command(["serve"])
    assert (served[0].workers, served[0].warm_up) == (3, False)


def test_quota_and_memory_of_a_container_decide_what_is_not_set(
    served: list[Settings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tree = v2(tmp_path, {"cpu.max": "200000 100000\n", "memory.max": f"{1 << 30}\n"})
    container = read_machine(tree, cores=64, ram=256 << 30)
    for module in ("service.commands.setting_options", "service.config.settings"):
        monkeypatch.setattr(f"{module}.this_machine", lambda: container)
    run_command(["serve"])
    run_command(["serve", "--workers", "5", "--max-run-bytes", "999999999"])
    assert [(one.worker_count, one.thread_count, one.max_run_bytes) for one in served] == [
        (2, 1, 288 << 20),
        (5, 1, 999_999_999),
    ]
    assert list(describe_fit(served[0], container)) == [
        "2 workers of 1 thread on 2 CPUs: a quota of 2 CPUs in /sys/fs/cgroup/cpu.max",
        "1024 MiB of memory: the limit in /sys/fs/cgroup/memory.max; max_body_bytes 50331648, "
        "max_buffered_bytes 100663296, max_run_bytes 301989888",
    ]


def test_bad_setting_ends_with_one_line(served: list[Settings], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["serve", "--port", "http"]) == USAGE_ERROR
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("kuiper: port: input should be a valid integer")
    assert not served


@pytest.mark.parametrize(
    "flag", ["--wrokers=2", "--api-keys=a", "--admin-keys=a", "--ssl-keyfile-password=a"]
)
def test_unknown_flag_ends_with_usage_and_secrets_are_no_flags(
    served: list[Settings], capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    assert run_command(["serve", flag]) == USAGE_ERROR
    assert flag.partition("=")[0] in capsys.readouterr().err
    assert not served
