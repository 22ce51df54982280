"""A replica: the application that `kuiper serve` runs, where Ray Serve has the connections and the processes."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.types import ASGIApp
from uvicorn.config import HTTP_PROTOCOLS

from service.app import create_app
from service.config.fitting import describe_fit, fit_to_memory
from service.config.machine import Machine, this_machine
from service.config.settings import Settings, load_settings
from service.http.route_threads import limit_route_threads
from service.memory_trimmer import use_one_heap
from service.ray.autoscaling import BUSY, WAITING, WORKERS
from service.ray.ingress import behind_ingress
from service.server.connection import Connection
from service.server.connection_policy import connection_policy
from service.services import services_of
from service.telemetry.logging import configure_logging

_logger = logging.getLogger(__name__)


class Replica:
    """One replica. Ray calls its methods on the event loop that serves requests.

    Args:
        values: settings by their names; what they leave open comes from the environment and the file of the node.

    Attributes:
        application: what serves requests.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        use_one_heap()
        machine = _assigned_machine()
        self._settings = fit_to_memory(_fit_to_cpus(load_settings(values), machine.cpus), machine.memory)
        configure_logging(self._settings.log_level, self._settings.log_format)
        for line in describe_fit(self._settings, machine):
            _logger.info(line)
        if os.environ.get("RAY_SERVE_ENABLE_HA_PROXY") != "1":
            _logger.warning(
                "requests take some ten milliseconds in Ray's Python proxy: "
                "start Ray's nodes with the variables that `python -m service.ray` prints"
            )
        _use_own_connection(self._settings)
        self.application = create_app(self._settings)
        self._services = services_of(self.application)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Return what serves requests; Ray then runs its lifespan, which loads the models."""
        return behind_ingress(self.application)

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Return what `LoadPolicy` reads."""
        scheduler = self._services.scheduler
        return {
            BUSY: float(scheduler.busy_workers()),
            WAITING: float(scheduler.waiting()),
            WORKERS: float(self._settings.worker_count),
        }

    async def check_health(self) -> None:
        """Check that requests are answered, as `/readyz` does.

        Raises:
            ServiceError: they are not; Ray sends none, and replaces the replica.
        """
        limit_route_threads()  # Ray sets as many as max_ongoing_requests whenever it has configured the replica
        self._services.check_ready()


def _fit_to_cpus(settings: Settings, cpus: int) -> Settings:
    """Return settings whose workers and threads, where they are left open, fit the CPUs of a replica."""
    workers = settings.workers or cpus
    return settings.model_copy(
        update={"workers": workers, "threads": settings.threads or max(1, cpus // workers)}
    )


def _assigned_machine() -> Machine:
    """Return the CPUs and the memory that Ray has assigned to this replica, of all that the node has."""
    import ray  # noqa: PLC0415  # only a replica has it

    resources = ray.get_runtime_context().get_assigned_resources()
    machine, memory = this_machine(), resources.get("memory")
    cpus = max(1, min(machine.cpus, int(resources.get("CPU", machine.cpus))))
    machine = replace(machine, cpus=cpus, cpus_from="the CPUs that Ray assigned to the replica")
    if memory is None:
        return machine
    return replace(machine, memory=int(memory), memory_from="the memory that Ray assigned to the replica")


def _use_own_connection(settings: Settings) -> None:
    """Have uvicorn, which Ray starts in this process later, speak HTTP with the server's own connection.

    The connection sends the head of a response together with its body. uvicorn's sends them one after the other, and
    where a replica is killed between the two, the proxy has begun to pass the response on and cannot
    replay the request.
    """
    connect = partial(Connection, policy=connection_policy(settings))
    HTTP_PROTOCOLS["auto"] = connect  # type: ignore[assignment]  # uvicorn imports a name, and takes what is none
    # the proxy passes on what clients say of their addresses, and adds nothing to it
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
