"""The calls that do not run a model: metadata, configuration, statistics, the repository, settings."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.json_format import ParseDict

from service.config.override import parse_load_parameters
from service.errors import ServiceError
from service.grpc.front import Front, Incoming, UnaryHandler
from service.grpc.infer_request import parameter_of, parameters_of
from service.grpc.messages import message_class, parse
from service.http.changes import needs_one_process
from service.repository.loaded_model import LoadedModel
from service.scheduling.policy import scheduling_policy
from service.scheduling.trace_setting import TraceSetting
from service.v2.log_settings import change_log_settings, show_log_settings
from service.v2.metadata import describe_config, describe_model, describe_server
from service.v2.repository_index import describe_index
from service.v2.statistics import describe_statistics
from service.v2.trace_settings import change_trace_setting, show_trace_setting

_MAX_BYTES = 1 << 20
"""Maximum bytes of a message that holds no tensors."""
TRACE_PATH, LOG_PATH = "/v2/trace/setting", "/v2/logging"
"""The paths over HTTP of the two calls that may change the server."""


def plain_response(name: str, make: Callable[[Any, Incoming], Awaitable[dict[str, Any]]]) -> UnaryHandler:
    """Return what serves a call by the fields of its response.

    Args:
        name: the call, whose messages are `inference.{name}Request` and `…Response`.
        make: returns the fields of the response, from the request; what the response has no field for is left out.
    """
    request_class = message_class(f"inference.{name}Request")
    response_class = message_class(f"inference.{name}Response")

    async def respond(incoming: Incoming) -> bytes:
        made = await make(parse(request_class, incoming.data, _MAX_BYTES), incoming)
        written: bytes = ParseDict(made, response_class(), ignore_unknown_fields=True).SerializeToString()
        return written

    return respond


class PlainCalls:
    """Serves the calls that do not run a model; a method for each, from request and call to the response's fields.

    Args:
        front: admits calls; its services are what the calls are about.
    """

    def __init__(self, front: Front) -> None:
        self._front = front
        self._services = front.services

    async def server_live(self, _request: Any, _incoming: Incoming) -> dict[str, Any]:
        """Return that the process is alive."""
        return {"live": True}

    async def server_ready(self, _request: Any, _incoming: Incoming) -> dict[str, Any]:
        """Return whether requests are accepted."""
        try:
            self._services.check_ready()
        except ServiceError:
            return {"ready": False}
        return {"ready": True}

    async def model_ready(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Return whether a model accepts requests; not if there is none of that name."""
        try:
            self._find(request, incoming)
        except ServiceError:
            return {"ready": False}
        return {"ready": True}

    async def server_metadata(self, _request: Any, _incoming: Incoming) -> dict[str, Any]:
        """Describe the server."""
        return describe_server().model_dump()

    async def model_metadata(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Describe a model."""
        model = self._find(request, incoming)
        described = describe_model(model, self._services.repository.versions(model.name))
        return described.model_dump(exclude_none=True)

    async def model_config(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Describe a model's configuration in Triton's terms."""
        model = self._find(request, incoming)
        policy = scheduling_policy(model.config, self._services.settings, model.batching)
        return {"config": describe_config(model, policy).model_dump(exclude_none=True)}

    async def model_statistics(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Show the statistics of a model, of one version of it, or of all models."""
        if not request.name:
            shown = [(model.name, model.version) for model in self._services.repository]
        else:
            model = self._find(request, incoming)
            versions = [model.version] if request.version else self._services.repository.versions(model.name)
            shown = [(model.name, version) for version in versions]
        counted = await asyncio.to_thread(self._services.telemetry.statistics.read, shown)
        return {"model_stats": [describe_statistics(one).model_dump() for one in counted]}

    async def repository_index(self, request: Any, _incoming: Incoming) -> dict[str, Any]:
        """List every version of every model, or those that are served."""
        services = self._services
        lines = await services.loading_threads.run(services.repository.index)
        index = describe_index(lines, only_ready=request.ready)
        return {"models": [line.model_dump(exclude_none=True) for line in index]}

    async def repository_model_load(self, request: Any, _incoming: Incoming) -> dict[str, Any]:
        """Load or reload a model."""
        services, name, parameters = self._services, request.model_name, parameters_of(request)
        repository = services.repository
        override = parse_load_parameters(name, parameters)
        self._check_alone()
        await services.loading_threads.run(lambda: repository.load(name, override, services.progress.check))
        return {}

    async def repository_model_unload(self, request: Any, _incoming: Incoming) -> dict[str, Any]:
        """Stop serving a model; pipelines that run it are refused until it is loaded again."""
        repository, name = self._services.repository, request.model_name
        self._check_alone()
        await self._services.loading_threads.run(lambda: repository.unload(name))
        return {}

    async def trace_setting(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Show, or change, which runs are traced without a request asking for it."""
        scheduler = self._services.scheduler
        setting, start = scheduler.server_tracing, TraceSetting(self._services.settings.trace_rate)
        if request.model_name:
            setting = scheduler.trace_setting(self._services.repository.find(request.model_name))
            start = scheduler.server_tracing.for_model()
        values = {name: _setting(entry.value) for name, entry in request.settings.items()}
        if values:
            self._front.check_key("POST", TRACE_PATH, incoming.context)
            self._check_alone()
            change_trace_setting(setting, start, values)
        fields = show_trace_setting(setting).model_dump().items()
        return {"settings": {name: {"value": _listed(value)} for name, value in fields}}

    async def log_settings(self, request: Any, incoming: Incoming) -> dict[str, Any]:
        """Show, or change, what is logged."""
        values = {name: parameter_of(entry) for name, entry in request.settings.items()}
        if values:
            self._front.check_key("POST", LOG_PATH, incoming.context)
            self._check_alone()
            change_log_settings(values)
        shown = show_log_settings().model_dump()
        return {"settings": {name: {_kind(value): value} for name, value in shown.items()}}

    async def shared_memory(self, _incoming: Incoming) -> bytes:
        """Refuse a call about shared memory.

        Raises:
            ServiceError: 501 `call_not_served`.
        """
        message = "shared memory is not served; send tensors as raw_input_contents"
        raise ServiceError(501, "call_not_served", message)

    def _check_alone(self) -> None:
        """Refuse a change that one of several processes would make alone.

        Raises:
            ServiceError: 403 `needs_one_process`.
        """
        if self._services.process is not None:
            raise needs_one_process()

    def _find(self, request: Any, incoming: Incoming) -> LoadedModel:
        """Return the model that a request names.

        Raises:
            ServiceError: 404 or 503.
        """
        model = self._services.repository.find(request.name, request.version or None)
        incoming.context.model = model.name
        return model


def _setting(values: Any) -> Any:
    """Return the values of a trace setting as JSON would have them: null restores the value at the start."""
    return values[0] if len(values) == 1 else list(values) or None


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _kind(value: object) -> str:
    """Return the field of a log setting for a value."""
    if isinstance(value, bool):
        return "bool_param"
    return "uint32_param" if isinstance(value, int) else "string_param"
