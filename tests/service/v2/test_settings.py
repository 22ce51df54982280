"""Trace and log settings: what can be changed, and that nothing is changed by halves."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from service.errors import ServiceError
from service.scheduling.queue import TraceSetting
from service.v2.log_settings import change_log_settings, show_log_settings
from service.v2.trace_settings import change_trace_setting, show_trace_setting


@pytest.fixture(autouse=True)
def level_of_the_test() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.INFO)
    yield
    root.setLevel(before)


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ({}, logging.INFO),
        ({"log_verbose_level": 3}, logging.DEBUG),
        ({"log_info": False}, logging.WARNING),
        ({"log_info": False, "log_warning": False}, logging.ERROR),
        ({"log_info": False, "log_warning": False, "log_error": False}, logging.CRITICAL),
        ({"log_file": "", "log_format": "default"}, logging.INFO),
    ],
)
def test_log_settings_become_a_level(values: dict[str, Any], level: int) -> None:
    shown = change_log_settings(values)
    assert logging.getLogger().level == level
    assert shown == show_log_settings()
    for name, value in values.items():
        assert getattr(shown, name) == (min(value, 1) if name == "log_verbose_level" else value)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"log_warning": False}, "wherever a lower one is"),
        ({"log_verbose_level": 1, "log_info": False}, "wherever a lower one is"),
        ({"log_info": False, "log_file": "/var/log/x"}, "log_file"),
        ({"log_format": "ISO8601"}, "log_format"),
        ({"log_info": "no"}, "true or false"),
        ({"log_verbose_level": -1}, "from 0"),
        ({"log_verbose_level": True}, "from 0"),
        ({"log_error": None}, "true or false"),
        ({"verbosity": 1}, "verbosity is no log setting; expected one of log_file, log_info"),
    ],
)
def test_log_settings_that_cannot_be_had(values: dict[str, Any], word: str) -> None:
    with pytest.raises(ServiceError, match=word) as caught:
        change_log_settings(values)
    assert (caught.value.status, caught.value.code) == (400, "invalid_setting")
    assert logging.getLogger().level == logging.INFO


def test_trace_setting_is_changed_and_goes_back() -> None:
    setting = TraceSetting.of_server(100)
    shown = change_trace_setting(setting, {"trace_level": ["OFF"], "trace_rate": "7", "trace_count": 3})
    assert dict(setting.values) == {"trace_level": "OFF", "trace_rate": 7, "trace_count": 3}
    assert (shown.trace_level, shown.trace_rate, shown.trace_count) == (["OFF"], "7", "3")
    assert shown == show_trace_setting(setting)
    change_trace_setting(setting, {"trace_level": None, "trace_rate": None, "trace_count": None})
    assert dict(setting.values) == {
        "trace_level": "TIMESTAMPS",
        "trace_rate": 100,
        "trace_count": -1,
    }


def test_model_goes_back_to_the_servers_setting() -> None:
    server = TraceSetting.of_server(100)
    model = server.for_model()
    change_trace_setting(model, {"trace_rate": 5})
    assert (server.values["trace_rate"], model.values["trace_rate"]) == (100, 5)
    change_trace_setting(model, {"trace_rate": None})
    change_trace_setting(server, {"trace_rate": 9})
    assert model.values["trace_rate"] == 9


def test_what_is_shown_may_be_sent_back() -> None:
    assert change_log_settings(show_log_settings().model_dump()) == show_log_settings()
    setting = TraceSetting.of_server(7)
    setting.values["trace_level"] = "OFF"
    shown = show_trace_setting(setting)
    assert change_trace_setting(setting, shown.model_dump()) == shown


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"trace_level": ["TENSORS"]}, "TIMESTAMPS"),
        ({"trace_level": []}, "TIMESTAMPS"),
        ({"trace_level": [["OFF"]]}, "TIMESTAMPS"),
        ({"trace_rate": 5, "trace_count": "x"}, "trace_count"),
        ({"trace_rate": -1}, "from 0"),
        ({"trace_rate": True}, "from 0"),
        ({"trace_rate": 1 << 31}, "from 0"),
        ({"trace_rate": "--5"}, "from 0"),
        ({"trace_count": -2}, "from -1"),
        ({"trace_file": "/tmp/x"}, "GET /traces"),
        ({"trace_mode": "opentelemetry"}, "trace_mode"),
        ({"trace_rate": [5]}, "from 0"),
        ({"rate": 1}, "rate is no trace setting; expected one of trace_level, trace_rate"),
        ({"trace_rates": 1}, "did you mean 'trace_rate'"),
    ],
)
def test_trace_settings_that_cannot_be_had(values: dict[str, Any], word: str) -> None:
    setting = TraceSetting.of_server(100)
    with pytest.raises(ServiceError, match=word) as caught:
        change_trace_setting(setting, values)
    assert (caught.value.status, caught.value.code) == (400, "invalid_setting")
    assert setting.values["trace_rate"] == 100
