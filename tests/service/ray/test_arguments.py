"""What `build` is given: settings and Ray's options, each with a sentence where it is wrong."""

from typing import Any

import pytest

from service.config.setting_file import SettingsError
from service.ray.arguments import Autoscaling, Deployment, read_arguments


def test_settings_and_deployment_are_told_apart() -> None:
    given = {"models": "models", "workers": 2, "deployment": {"num_replicas": 3, "num_cpus": 2}}
    arguments = read_arguments(given)
    assert arguments.settings == {"models": "models", "workers": 2}
    assert (arguments.deployment.num_replicas, arguments.deployment.num_cpus) == (3, 2)
    assert read_arguments({}).deployment == Deployment()


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
        ({"deployment": {"replicas": 2}}, "deployment.replicas: unknown argument"),
        ({"deployment": {"num_replicas": 0}}, "deployment.num_replicas: input should be greater"),
        ({"deployment": 3}, "deployment: input should be a table"),
        ({"deployment": {"autoscaling": {}}}, "deployment.autoscaling.max_replicas: field required"),
        (
            {"deployment": {"autoscaling": {"min_replicas": 3, "max_replicas": 2}}},
            "deployment.autoscaling: max_replicas is less than min_replicas, which is 3",
        ),
        (
            {"deployment": {"num_replicas": 2, "autoscaling": {"max_replicas": 2}}},
            "either num_replicas or autoscaling",
        ),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_arguments(given)
    assert problem in str(caught.value)


def test_grpc_has_an_address_of_its_own() -> None:
    given = {"grpc_port": 8001, "host": "0.0.0.0", "deployment": {"max_replicas_per_node": 1}}
    assert read_arguments(given).settings == {"grpc_port": 8001, "host": "0.0.0.0"}


def test_secrets_are_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        read_arguments({"api_keys": "of-someone"})
    assert "of-someone" not in str(caught.value)


def test_every_argument_is_documented() -> None:
    for model in (Deployment, Autoscaling):
        assert all(field.description for field in model.model_fields.values())
