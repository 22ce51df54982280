"""What `build` is given: settings and Ray's options, each with a sentence where it is wrong."""

from typing import Any

import pytest

from service.config.setting_file import SettingsError
from service.ray.arguments import read_arguments


def test_settings_and_deployment_are_distinguished() -> None:
    given = {"models": "models", "workers": 2, "deployment": {"num_replicas": 3, "num_cpus": 2}}
    settings = {"models": "models", "workers": 2}
    assert read_arguments(given) == (settings, {"num_replicas": 3, "num_cpus": 2})
    assert read_arguments({}) == ({}, {})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"wokers": 2}, "wokers: unknown setting; did you mean workers?"),
        ({"workers": -1}, "workers: input should be greater than or equal to 0, got -1"),
        ({"port": 8000}, "port: a replica of Ray Serve has no use for it"),
        ({"host": "0.0.0.0"}, "host: it is of use to gRPC only"),
        ({"grpc_port": 8001}, "max_replicas_per_node to 1"),
        ({"drain_seconds": 5}, "graceful_shutdown_timeout_s"),
        ({"api_keys": "secret"}, "KUIPER_API_KEYS"),
        ({"model_control": "explicit"}, "in one of the replicas only"),
        ({"deployment": 3}, "deployment: expected a table"),
    ],
)
def test_what_is_wrong_is_reported(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_arguments(given)
    assert problem in str(caught.value)


def test_grpc_has_an_address_of_its_own() -> None:
    given = {"grpc_port": 8001, "host": "0.0.0.0", "deployment": {"max_replicas_per_node": 1}}
    assert read_arguments(given)[0] == {"grpc_port": 8001, "host": "0.0.0.0"}


def test_secrets_are_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        read_arguments({"api_keys": "of-someone"})
    assert "of-someone" not in str(caught.value)
