"""What `build` is given: settings of the server, and deployment options of its replicas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.config.setting_file import SettingsError
from service.config.settings import describe_settings, load_settings
from service.config.wording import problem_of

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


class Autoscaling(BaseModel):
    """How many replicas there are, by the load of their workers.

    The load is how many requests run or wait for a worker, a mean over time, divided by the number of workers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_replicas: int = Field(default=1, ge=1, description="fewest replicas")
    max_replicas: int = Field(ge=1, description="most replicas")
    target_load: float = Field(
        default=0.7, gt=0, description="load of the workers that the number of replicas is chosen for"
    )
    upscale_delay_s: float = Field(
        default=5.0, ge=0, description="seconds that more replicas have to be wanted before they start"
    )
    downscale_delay_s: float = Field(
        default=60.0, ge=0, description="seconds that fewer replicas have to be wanted before some end"
    )
    look_back_period_s: float = Field(
        default=15.0,
        gt=10,
        description="seconds over which the load is averaged; Ray takes no fewer than ten",
    )

    @model_validator(mode="after")
    def _check_order(self) -> "Autoscaling":
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas is less than min_replicas, which is {self.min_replicas}")
        return self


class Deployment(BaseModel):
    """The deployment options of the replicas. The names are Ray's where it has the same."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_replicas: int = Field(default=1, ge=1, description="how many replicas there are")
    autoscaling: Autoscaling | None = Field(
        default=None, description="has the number of replicas follow their load, in place of num_replicas"
    )
    num_cpus: float = Field(
        default=1.0,
        gt=0,
        description="CPUs that a replica takes of its node; without the setting workers, it has as many workers",
    )
    memory: int | None = Field(
        default=None,
        ge=1,
        description="bytes that a replica takes of its node; its limits are fitted to them",
    )
    max_replicas_per_node: int | None = Field(
        default=None, ge=1, description="most replicas on one node: 1 keeps one lost node from taking two"
    )
    max_surge_percent: int = Field(
        default=0,
        ge=0,
        le=100,
        description="replicas that a redeployment may add before it ends old ones, in percent; "
        "0 needs no room for more, but leaves a single replica's clients waiting",
    )
    graceful_shutdown_timeout_s: float = Field(
        default=45.0,
        gt=0,
        description="seconds that a replica has to answer what it was sent, until it is killed",
    )
    health_check_period_s: float = Field(
        default=5.0, gt=0, description="seconds between two questions whether a replica is ready"
    )
    health_check_timeout_s: float = Field(
        default=10.0, gt=0, description="seconds that such a question may take; three in vain end a replica"
    )

    @model_validator(mode="after")
    def _check_number(self) -> "Deployment":
        if self.autoscaling is not None and "num_replicas" in self.model_fields_set:
            raise ValueError("either num_replicas or autoscaling determines the number of replicas, not both")
        return self


@dataclass(frozen=True, slots=True)
class Arguments:
    """What `build` is given.

    Attributes:
        settings: settings of the server by their names, as they were given.
        deployment: the deployment options of the replicas.
    """

    settings: Mapping[str, Any]
    deployment: Deployment


def read_arguments(given: Mapping[str, Any]) -> Arguments:
    """Return what was given; all of it was checked, except for what only a replica's node can tell.

    Raises:
        SettingsError: an argument is unknown or invalid, or has no meaning in a replica.
    """
    settings = {name: value for name, value in given.items() if name != "deployment"}
    has_grpc = settings.get("grpc_port") is not None
    for name, value in settings.items():
        if name in _OF_LISTENERS and not has_grpc:
            raise SettingsError(f"{name}: it is of use to gRPC only, with grpc_port: {_INGRESS}")
        _check_meaning(name, value)
    load_settings({name: value for name, value in settings.items() if name != "config"})
    deployment = _read_deployment(given.get("deployment") or {})
    if settings.get("grpc_port") and deployment.max_replicas_per_node != 1:
        raise SettingsError(
            "grpc_port: only one replica of a node can listen on it: set deployment.max_replicas_per_node to 1"
        )
    return Arguments(settings, deployment)


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


def _read_deployment(given: object) -> Deployment:
    try:
        return Deployment.model_validate(given)
    except ValidationError as error:
        raise SettingsError("; ".join(_word(fault) for fault in error.errors())) from error


def _word(fault: Any) -> str:
    where = ".".join(("deployment", *map(str, fault["loc"])))
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown argument"
    problem = problem_of(fault)
    return f"{where}: {problem[0].lower()}{problem[1:]}, got {fault['input']!r}"
