"""What `build` is given: settings of the server, and deployment options of its replicas."""

from collections.abc import Mapping
from typing import Any

from service.config.setting_file import SettingsError
from service.config.settings import describe_settings, load_settings

_INGRESS = "Ray's ingress has the connections of clients"
_MEANINGLESS = {
    "port": _INGRESS,
    "processes": "deployment has the number of replicas",
    "drain_seconds": "deployment has graceful_shutdown_timeout_s",
    "drain_delay_seconds": "environment() has drain_seconds",
}
"""Settings that a replica has no use for, and what replaces them."""
_OF_LISTENERS = ("host", "ssl_certfile", "ssl_keyfile", "ssl_ca_certs")
"""Settings of what listens in a replica besides Ray's ingress: gRPC, if anything."""


def read_arguments(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings by their names, which were checked, and the deployment options, which Ray is to check.

    Raises:
        SettingsError: a setting is unknown or invalid, or has no meaning in a replica.
    """
    settings = dict(given)
    deployment = settings.pop("deployment", None) or {}
    if not isinstance(deployment, Mapping):
        raise SettingsError(f"deployment: expected a table of options, got {deployment!r}")
    has_grpc = settings.get("grpc_port") is not None
    for name, value in settings.items():
        if name in _OF_LISTENERS and not has_grpc:
            raise SettingsError(f"{name}: it is of use to gRPC only, with grpc_port: {_INGRESS}")
        _check_meaning(name, value)
    load_settings({name: value for name, value in settings.items() if name != "config"})
    if settings.get("grpc_port") and deployment.get("max_replicas_per_node") != 1:
        raise SettingsError(
            "grpc_port: only one replica of a node can listen on it: set deployment.max_replicas_per_node to 1"
        )
    return settings, dict(deployment)


def _check_meaning(name: str, value: object) -> None:
    """Check that a setting has a meaning in a replica.

    Raises:
        SettingsError: it has none.
    """
    if name in _MEANINGLESS:
        raise SettingsError(f"{name}: a replica of Ray Serve has no use for it: {_MEANINGLESS[name]}")
    if name in {doc.name for doc in describe_settings() if not doc.flag}:
        raise SettingsError(
            f"{name}: arguments are shown in Ray's dashboard; secrets come from KUIPER_{name.upper()} or a file"
        )
    if name == "model_control" and value == "explicit":
        raise SettingsError(
            "model_control: explicit would load and unload models in one of the replicas only"
        )
