"""Imports for settings that need an extra."""

import pytest

from service.config.extras import needs_extra
from service.config.setting_file import SettingsError


def test_the_extra_of_a_missing_package_is_named() -> None:
    with (
        pytest.raises(SettingsError, match=r"^otel: needs an extra .*\[otel\]") as caught,
        needs_extra("otel:", "otel", "opentelemetry"),
    ):
        raise ModuleNotFoundError("No module named 'opentelemetry.sdk'", name="opentelemetry.sdk")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_other_missing_modules_are_reported_as_they_are() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match="'other'"),
        needs_extra("otel:", "otel", "opentelemetry"),
    ):
        raise ModuleNotFoundError("No module named 'other'", name="other")
