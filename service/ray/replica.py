"""A replica: the application that `kuiper serve` runs, where Ray Serve has the connections and the processes."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import HTTP_PROTOCOLS

from service.app import create_app
from service.config.fitting import describe_fit, fit_to_memory
from service.config.machine import Machine, set_machine, this_machine
from service.config.settings import load_settings
from service.context import REQUEST_ID_HEADER
from service.http.route_threads import limit_route_threads
from service.memory_trimmer import use_one_heap
from service.server.connection import Connection
from service.server.connections import open_connections
from service.services import services_of
from service.telemetry.logging import configure_logging

_ID = REQUEST_ID_HEADER.lower().encode()
_OWN_PATHS = ("/v2/", "/models/")
"""Where the API itself names models: clients of the Open Inference Protocol ask one address for every model."""
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
        set_machine(machine)
        self._settings = fit_to_memory(load_settings(values), machine.memory)
        configure_logging(self._settings.log_level, self._settings.log_format)
        for line in describe_fit(self._settings, machine):
            _logger.info(line)
        if os.environ.get("RAY_SERVE_ENABLE_HA_PROXY") != "1":
            _logger.warning(
                "requests take some ten milliseconds in Ray's Python proxy: "
                "start Ray's nodes with the variables that `python -m service.ray` prints"
            )
        # uvicorn, which Ray starts here later, is to speak HTTP with the server's own connection and its limits
        connect = partial(Connection, shared=open_connections(self._settings))
        HTTP_PROTOCOLS["auto"] = connect  # type: ignore[assignment]  # uvicorn imports a name, and takes what is none
        # the proxy passes on what clients say of their addresses, and adds nothing to it
        os.environ.setdefault("FORWARDED_ALLOW_IPS", "")
        self.application = create_app(self._settings)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """Return what serves requests; Ray then runs its lifespan, which loads the models."""
        return behind_ingress(self.application)

    async def check_health(self) -> None:
        """Check that requests are answered, as `/readyz` does.

        Raises:
            ServiceError: they are not; Ray sends none, and replaces the replica.
        """
        limit_route_threads()  # Ray sets as many as max_ongoing_requests whenever it has configured the replica
        services_of(self.application).check_ready()


def behind_ingress(app: ASGIApp) -> ASGIApp:
    """Return an application for what Ray's ingress passes on: below a route prefix, with the id of a request set once.

    Below the route prefix `/digits`, `/digits/readyz` becomes `/readyz`; paths with a prefix of the API's own,
    `/v2/models/digits`, stay as they are. Ray adds the id that a request came with to the response; the server's own
    field of the same value is removed.
    """

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        prefix = scope.get("root_path")
        if prefix:
            scope = {**scope, "root_path": ""}
            if not f"{prefix}/".startswith(_OWN_PATHS):
                scope["path"] = scope["path"].removeprefix(prefix) or "/"
                scope["raw_path"] = (scope.get("raw_path") or b"").removeprefix(prefix.encode()) or b"/"
        given = [field for field in scope.get("headers", ()) if field[0] == _ID][:1]

        async def send_without_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                fields = [(name.lower(), value) for name, value in message.get("headers", ())]
                message = {**message, "headers": [field for field in fields if field not in given]}
            await send(message)

        await app(scope, receive, send_without_id)

    return respond


def _assigned_machine() -> Machine:
    """Return the CPUs and the memory that Ray has assigned to this replica, of all that the node has."""
    import ray  # noqa: PLC0415  # only a replica has it

    resources, node = ray.get_runtime_context().get_assigned_resources(), this_machine()
    cpus = max(1, min(node.cpus, int(resources.get("CPU", 0))))
    machine = Machine(cpus, "the CPUs that Ray assigned to the replica", node.memory, node.memory_from)
    if "memory" in resources:
        source = "the memory that Ray assigned to the replica"
        machine = replace(machine, memory=int(resources["memory"]), memory_from=source)
    return machine
