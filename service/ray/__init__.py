"""Ray Serve: each replica of a deployment is the whole server, behind the HAProxy that Ray runs.

`build` is what `serve.run` and the `import_path` of a YAML file take; `environment` returns the variables that Ray's
own processes need. Ray is not imported until `build` is called, as it reads these variables when it is imported.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from service.config.setting_file import SettingsError
from service.config.settings import describe_settings, load_settings
from service.ray.environment import environment
from service.version import install_command

if TYPE_CHECKING:
    from ray.serve import Application

__all__ = ["build", "environment"]

_MEANINGLESS = {
    "port": "Ray's ingress has the connections of clients",
    "processes": "deployment has the number of replicas",
    "drain_seconds": "deployment has graceful_shutdown_timeout_s",
    "drain_delay_seconds": "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S is the same",
}
"""Settings that a replica has no use for, and what replaces them."""
_OF_LISTENERS = ("host", "ssl_certfile", "ssl_keyfile", "ssl_ca_certs")
"""Settings of what listens in a replica besides Ray's ingress: gRPC, if anything."""


def build(args: Mapping[str, Any]) -> "Application":
    """Return the Ray Serve application that serves models: `serve.run(build({"models": "models"}))`.

    Args:
        args: settings by their names, and `deployment`: the deployment options of the replicas, docs/guides/ray.md.

    Raises:
        SettingsError: an argument is unknown or invalid, or has no meaning in a replica.
        ImportError: Ray Serve is not installed; says how to install it.
    """
    settings = dict(args)
    options = settings.pop("deployment", None) or {}
    if not isinstance(options, Mapping):
        raise SettingsError(f"deployment: expected a table of options, got {options!r}")
    _check(settings, options)
    try:
        from service.ray.application import make_application  # noqa: PLC0415  # see above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise ImportError(f"{error}; Ray Serve comes with: {install_command('ray')}") from error
    return make_application(settings, options)


def _check(settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    secrets = {doc.name for doc in describe_settings() if not doc.flag}
    for name in settings:
        if name in _MEANINGLESS:
            raise SettingsError(f"{name}: a replica of Ray Serve has no use for it: {_MEANINGLESS[name]}")
        if name in _OF_LISTENERS and settings.get("grpc_port") is None:
            raise SettingsError(f"{name}: it is of use to gRPC only, with grpc_port: {_MEANINGLESS['port']}")
        if name in secrets:
            raise SettingsError(
                f"{name}: arguments are shown in Ray's dashboard; "
                f"secrets come from KUIPER_{name.upper()} or a file"
            )
    if settings.get("model_control") == "explicit":
        raise SettingsError(
            "model_control: explicit would load and unload models in one of the replicas only"
        )
    if settings.get("grpc_port") and options.get("max_replicas_per_node") != 1:
        raise SettingsError(
            "grpc_port: only one replica of a node can listen on it: set deployment.max_replicas_per_node to 1"
        )
    load_settings({name: value for name, value in settings.items() if name != "config"})
