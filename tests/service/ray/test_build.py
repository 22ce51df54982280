"""`build` where Ray Serve is not installed."""

import sys

import pytest

from service.config.setting_file import SettingsError
from service.ray import build


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "service.ray.application", raising=False)


def test_the_extra_is_named() -> None:
    with pytest.raises(ImportError, match=r"pip install -e '\.\[ray\]'"):
        build({"models": "models"})


def test_wrong_arguments_are_reported_before() -> None:
    with pytest.raises(SettingsError, match="port"):
        build({"port": 1})
