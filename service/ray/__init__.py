"""Ray Serve: each replica of a deployment is the whole server, behind the HAProxy that Ray runs.

`build` is what the `import_path` of a YAML file names, and `application` what `serve.run` takes; `environment` returns
the variables that Ray's own processes need. Ray is not imported until one of the first two is called, as it reads these
variables when it is imported.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from service.config.setting_file import SettingsError
from service.config.settings import describe_settings, load_settings
from service.ray.environment import environment
from service.version import install_command

if TYPE_CHECKING:
    from ray.serve import Application

__all__ = ["application", "build", "environment"]

_MEANINGLESS = {
    "port": "Ray's ingress has the connections of clients",
    "processes": "deployment has the number of replicas",
    "drain_seconds": "deployment has graceful_shutdown_timeout_s",
    "drain_delay_seconds": "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S is the same",
}
"""Settings that a replica has no use for, and what replaces them."""
_DEFAULTS = {
    "name": "Kuiper",
    "ray_actor_options": {"num_cpus": 1},
    "max_ongoing_requests": 1_000_000,  # the replica's own queues alone refuse requests
    "graceful_shutdown_timeout_s": 45.0,
    "health_check_period_s": 5.0,
    "health_check_timeout_s": 10.0,
    "logging_config": {"enable_access_log": False},  # the server has its own
}
"""Options of the deployment that differ from Ray's own."""
_OF_LISTENERS = ("host", "ssl_certfile", "ssl_keyfile", "ssl_ca_certs")
"""Settings of what listens in a replica besides Ray's ingress: gRPC, if anything."""


def build(args: Mapping[str, Any]) -> "Application":
    """Return the Ray Serve application that serves models, which the `import_path` of a YAML file names.

    Args:
        args: settings by their names; options of the deployment are those of the block `deployments` of the file.

    Raises:
        SettingsError, ImportError: as `application`.
    """
    return application(args)


def application(settings: Mapping[str, Any], **options: Any) -> "Application":
    """Return the application that `serve.run` runs: `application({"models": "models"}, num_replicas=2)`.

    Args:
        settings: settings by their names.
        options: options of the deployment, by the names of `ray.serve.deployment`.

    Raises:
        SettingsError: a setting is unknown or invalid, or has no meaning in a replica.
        ImportError: Ray Serve is not installed; says how to install it.
    """
    _check(settings)
    try:
        from ray import serve  # noqa: PLC0415  # see above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise ImportError(f"{error}; Ray Serve comes with: {install_command('ray')}") from error
    from service.ray.replica import Replica  # noqa: PLC0415  # only a replica needs the server

    return serve.deployment(**{**_DEFAULTS, **options})(serve.ingress()(Replica)).bind(dict(settings))


def _check(settings: Mapping[str, Any]) -> None:
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
    load_settings({name: value for name, value in settings.items() if name != "config"})
