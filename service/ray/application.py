"""The Ray Serve application: replicas of the server, and their deployment options."""

from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from service.config.setting_file import SettingsError
from service.ray.autoscaling import LoadPolicy
from service.ray.replica import Replica


def make_application(settings: Mapping[str, Any], options: Mapping[str, Any]) -> Application:
    """Return the application that `serve.run` runs.

    Args:
        settings: settings of the server by their names.
        options: the deployment options, as docs/guides/ray.md has them.

    Raises:
        SettingsError: an option is unknown or invalid.
    """
    try:
        deployed = _deployment(**options)(serve.ingress()(Replica))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"deployment: {error}") from error
    return deployed.bind(dict(settings))


def _deployment(
    *,
    num_cpus: float = 1.0,
    memory: int | None = None,
    autoscaling: Mapping[str, Any] | None = None,
    num_replicas: int | None = None,
    max_replicas_per_node: int | None = None,
    max_surge_percent: int = 0,
    graceful_shutdown_timeout_s: float = 45.0,
    health_check_period_s: float = 5.0,
    health_check_timeout_s: float = 10.0,
) -> Any:
    if not num_cpus > 0:  # Ray would assign none, and the replica take all of the node
        raise ValueError(f"num_cpus is above 0, got {num_cpus!r}")
    return serve.deployment(
        name="Kuiper",
        num_replicas=1 if num_replicas is None and autoscaling is None else num_replicas,
        autoscaling_config=None if autoscaling is None else _autoscaling(**autoscaling),
        ray_actor_options={"num_cpus": num_cpus} | ({} if memory is None else {"memory": memory}),
        max_replicas_per_node=max_replicas_per_node,
        max_surge_percent=max_surge_percent,
        max_ongoing_requests=1_000_000,  # the replica's own queues alone refuse requests
        max_queued_requests=-1,
        graceful_shutdown_timeout_s=graceful_shutdown_timeout_s,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=health_check_period_s,
        health_check_timeout_s=health_check_timeout_s,
        logging_config={"enable_access_log": False},  # the server has its own
    )


def _autoscaling(
    *,
    max_replicas: int,
    min_replicas: int = 1,
    target_load: float = 0.7,
    upscale_delay_s: float = 5.0,
    downscale_delay_s: float = 60.0,
    look_back_period_s: float = 15.0,
) -> AutoscalingConfig:
    if min_replicas < 1:  # without a replica nothing would report that requests wait
        raise ValueError(f"autoscaling.min_replicas is at least 1, got {min_replicas!r}")
    if not target_load > 0:
        raise ValueError(f"autoscaling.target_load is above 0, got {target_load!r}")
    return AutoscalingConfig(
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        upscale_delay_s=upscale_delay_s,
        downscale_delay_s=downscale_delay_s,
        look_back_period_s=look_back_period_s,
        policy=AutoscalingPolicy(
            policy_function=f"{LoadPolicy.__module__}:{LoadPolicy.__qualname__}",
            policy_kwargs={"target_load": target_load},
        ),
    )
