"""The Ray Serve application: replicas of the server, and their deployment options."""

from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from service.ray.arguments import Arguments, Autoscaling, Deployment
from service.ray.autoscaling import LoadPolicy
from service.ray.replica import Replica

NAME = "Kuiper"
"""The name of the deployment, by which a YAML file may override what `build` says of it."""
_UNLIMITED = 1_000_000
"""Requests that Ray passes on to a replica at once: the replica's own queues alone refuse requests."""


def make_application(arguments: Arguments) -> Application:
    """Return the application that `serve.run` runs."""
    deployment = serve.deployment(name=NAME, **deployment_options(arguments.deployment))
    return deployment(serve.ingress()(Replica)).bind(dict(arguments.settings))


def deployment_options(deployment: Deployment) -> dict[str, Any]:
    """Return the options of `serve.deployment`."""
    actor: dict[str, Any] = {"num_cpus": deployment.num_cpus}
    if deployment.memory is not None:
        actor["memory"] = deployment.memory
    return {
        **_number(deployment),
        "ray_actor_options": actor,
        "max_replicas_per_node": deployment.max_replicas_per_node,
        "max_surge_percent": deployment.max_surge_percent,
        "max_ongoing_requests": _UNLIMITED,
        "max_queued_requests": -1,
        "graceful_shutdown_timeout_s": deployment.graceful_shutdown_timeout_s,
        "graceful_shutdown_wait_loop_s": 0.5,
        "health_check_period_s": deployment.health_check_period_s,
        "health_check_timeout_s": deployment.health_check_timeout_s,
        "logging_config": {"enable_access_log": False},  # the server has its own
    }


def _number(deployment: Deployment) -> dict[str, Any]:
    if deployment.autoscaling is None:
        return {"num_replicas": deployment.num_replicas}
    return {"autoscaling_config": _autoscaling_config(deployment.autoscaling)}


def _autoscaling_config(autoscaling: Autoscaling) -> AutoscalingConfig:
    policy = f"{LoadPolicy.__module__}:{LoadPolicy.__qualname__}"
    wanted = autoscaling.model_dump(exclude={"target_load"})
    arguments = {"target_load": autoscaling.target_load}
    return AutoscalingConfig(
        **wanted, policy=AutoscalingPolicy(policy_function=policy, policy_kwargs=arguments)
    )
