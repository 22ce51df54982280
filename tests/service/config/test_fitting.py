"""Defaults that fit the memory, and what is reported of them."""

import itertools
import re

import pytest

from service.config.fitting import MEMORY_SHARES, describe_fit, fit_to_memory
from service.config.machine import Machine
from service.config.settings import Settings, load_settings

MIB = 1 << 20


def test_defaults_hold_where_there_is_enough() -> None:
    settings = Settings(workers=2)
    assert fit_to_memory(settings, 64 << 30) == settings
    assert fit_to_memory(settings, None) is settings


def test_less_memory_means_smaller_budgets() -> None:
    fitted = fit_to_memory(Settings(workers=2), (512 + 256) * MIB)
    assert fitted.max_body_bytes == 32 * MIB
    assert fitted.max_buffered_bytes == 64 * MIB
    assert fitted.limits.response_bytes == fitted.limits.image_pixels == 32 * MIB
    assert fitted.limits.tensor_elements == 8 * MIB
    assert fitted.limits.json_bytes == 8 * MIB
    assert fitted.max_run_bytes == 192 * MIB
    assert fitted.limits.body_bytes == 32 * MIB


def test_runs_of_all_workers_share_the_memory() -> None:
    assert fit_to_memory(Settings(workers=2), 1280 * MIB).max_run_bytes == 384 * MIB
    assert fit_to_memory(Settings(workers=1), 1280 * MIB).max_run_bytes == 768 * MIB


def test_memory_bounds_the_workers_that_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Machine(64, "", None, "")
    monkeypatch.setattr("service.config.settings.this_machine", lambda: many)
    fitted = fit_to_memory(Settings(), 1024 * MIB)
    assert (fitted.worker_count, fitted.thread_count, fitted.max_run_bytes) == (
        4,
        16,
        768 * MIB * 3 // 4 // 4,
    )
    assert fit_to_memory(Settings(), 64 << 30).worker_count == 64
    assert fit_to_memory(Settings(), 100 * MIB).worker_count == 1
    assert fit_to_memory(Settings(workers=9), 1024 * MIB).worker_count == 9


def test_what_is_set_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_MAX_RUN_BYTES", str(900 * MIB))
    fitted = fit_to_memory(load_settings({"max_body_bytes": str(64 * MIB)}), 256 * MIB)
    assert fitted.max_run_bytes == 900 * MIB
    assert fitted.max_body_bytes == 64 * MIB
    assert fitted.max_buffered_bytes == 64 * MIB  # rather than 32: such a body would never be taken


def test_what_is_for_many_requests_holds_that_for_one() -> None:
    fitted = fit_to_memory(Settings(max_body_bytes=100 * MIB), 512 * MIB)
    assert fitted.max_buffered_bytes == fitted.unsent_bytes == 100 * MIB
    fitted = fit_to_memory(Settings(max_body_bytes=1000 * MIB), 512 * MIB)
    assert fitted.max_buffered_bytes == 128 * MIB  # never more than by default


def test_budgets_together_leave_room_for_the_process() -> None:
    for memory, workers in itertools.product((512 * MIB, 1024 * MIB, 2048 * MIB, 8192 * MIB), (1, 2, 8)):
        fitted = fit_to_memory(Settings(workers=workers), memory)
        taken = fitted.max_buffered_bytes + fitted.unsent_bytes + fitted.worker_count * fitted.max_run_bytes
        assert taken + 256 * MIB <= memory


def test_every_setting_that_bounds_memory_is_fitted() -> None:
    named = {name for name in Settings.model_fields if re.fullmatch(r"max_\w+_bytes", name)}
    assert named == {*MEMORY_SHARES, "max_run_bytes"}


def test_no_default_becomes_nothing() -> None:
    fitted = fit_to_memory(Settings(workers=64), 1)
    assert all(getattr(fitted, name) == MIB for name in (*MEMORY_SHARES, "max_run_bytes"))


def test_what_was_taken_from_where_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(2, "a quota of 2 CPUs in /q", 512 * MIB, "the limit in /m")
    monkeypatch.setattr("service.config.settings.this_machine", lambda: machine)
    settings = fit_to_memory(Settings(workers=2, max_body_bytes=64 * MIB), machine.memory)
    assert list(describe_fit(settings, machine)) == [
        "2 workers of 1 thread on 2 CPUs: a quota of 2 CPUs in /q",
        "512 MiB of memory: the limit in /m; workers 2, max_buffered_bytes 67108864, max_run_bytes 100663296",
    ]
    ample = Machine(1, "a", 64 << 30, "b")
    assert list(describe_fit(Settings(threads=3), ample))[1] == "65536 MiB of memory: b; limits as by default"
    assert "1 worker of 3 threads on 1 CPU: a" in describe_fit(Settings(workers=1, threads=3), ample)
    assert len(list(describe_fit(Settings(), Machine(1, "a", None, "")))) == 1
