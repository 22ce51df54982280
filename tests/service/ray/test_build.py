"""`build` where Ray Serve is not installed: the arguments, each with a sentence where it is wrong."""

import sys
from typing import Any

import pytest

from service.config.setting_file import SettingsError
from service.ray import build


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)


@pytest.mark.parametrize(
    "given",
    [
        {"models": "models", "workers": 2},
        {"grpc_port": 8001, "host": "0.0.0.0"},
        {},
    ],
)
def test_the_extra_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(ImportError, match=r"pip install -e '\.\[ray\]'"):
        build(given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"wokers": 2}, "wokers: unknown setting; did you mean workers?"),
        ({"workers": -1}, "workers: input should be greater than or equal to 0, got -1"),
        ({"port": 8000}, "port: a replica of Ray Serve has no use for it"),
        ({"host": "0.0.0.0"}, "host: it is of use to gRPC only"),
        ({"drain_seconds": 5}, "graceful_shutdown_timeout_s"),
        ({"api_keys": "secret"}, "KUIPER_API_KEYS"),
        ({"model_control": "explicit"}, "in one of the replicas only"),
        ({"deployment": {"num_replicas": 2}}, "deployment: unknown setting"),
    ],
)
def test_what_is_wrong_is_reported(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build(given)
    assert problem in str(caught.value)


def test_secrets_are_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        build({"api_keys": "of-someone"})
    assert "of-someone" not in str(caught.value)
