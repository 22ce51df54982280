"""The calls that do not run a model: metadata, configuration, statistics, the repository, settings."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict

from service.config.override import parse_load_parameters
from service.errors import ServiceError
from service.grpc.front import Front, Handler, Incoming
from service.grpc.infer_request import parameter_of, parameters_of
from service.grpc.messages import INFERENCE_SERVICE, message_class, parse
from service.lifecycle import Phase
from service.repository.loaded_model import LoadedModel
from service.v2.log_settings import change_log_settings, show_log_settings
from service.v2.metadata import describe_config, describe_model, describe_server
from service.v2.statistics import describe_statistics
from service.v2.trace_settings import change_trace_setting, show_trace_setting

_MAX_BYTES = 1 << 20
"""Maximum bytes of a message that holds no tensors."""
_POLLED = ("ServerLive", "ServerReady")
_SHARED_MEMORY = tuple(
    f"{kind}SharedMemory{call}"
    for kind in ("System", "Cuda")
    for call in ("Status", "Register", "Unregister")
)

Fields = dict[str, Any]
"""The fields of a response; what it has none for is left out."""


class PlainCalls:
    """Serves the calls that do not run a model; a method for each, from request and call to the response's fields.

    Args:
        front: admits calls; its services are what the calls are about.
    """

    def __init__(self, front: Front) -> None:
        self._front = front
        self._services = front.services

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        """Return what serves each call, by its name."""
        calls = {
            "ServerLive": self._server_live,
            "ServerReady": self._server_ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server_metadata,
            "ModelMetadata": self._model_metadata,
            "ModelConfig": self._model_config,
            "ModelStatistics": self._model_statistics,
            "RepositoryIndex": self._repository_index,
            "RepositoryModelLoad": self._repository_model_load,
            "RepositoryModelUnload": self._repository_model_unload,
            "TraceSetting": self._trace_setting,
            "LogSettings": self._log_settings,
        }
        responses = {name: _response(name, call) for name, call in calls.items()}
        responses |= dict.fromkeys(_SHARED_MEMORY, _refuse_shared_memory)
        return {
            name: self._front.unary(f"/{INFERENCE_SERVICE}/{name}", respond, is_polled=name in _POLLED)
            for name, respond in responses.items()
        }

    async def _server_live(self, _request: Any, _incoming: Incoming) -> Fields:
        """Return that the process is alive."""
        return {"live": True}

    async def _server_ready(self, _request: Any, _incoming: Incoming) -> Fields:
        """Return whether requests are accepted."""
        return {"ready": self._services.lifecycle.phase is Phase.READY}

    async def _model_ready(self, request: Any, incoming: Incoming) -> Fields:
        """Return whether a model accepts requests; not if there is none of that name."""
        try:
            self._find(request, incoming)
        except ServiceError:
            return {"ready": False}
        return {"ready": True}

    async def _server_metadata(self, _request: Any, _incoming: Incoming) -> Fields:
        """Describe the server."""
        return describe_server().model_dump()

    async def _model_metadata(self, request: Any, incoming: Incoming) -> Fields:
        """Describe a model."""
        model = self._find(request, incoming)
        described = describe_model(model, self._services.repository.versions(model.name))
        return described.model_dump(exclude_none=True)

    async def _model_config(self, request: Any, incoming: Incoming) -> Fields:
        """Describe a model's configuration in Triton's terms."""
        described = describe_config(self._find(request, incoming), self._services.settings)
        return {"config": described.model_dump(exclude_none=True)}

    async def _model_statistics(self, request: Any, incoming: Incoming) -> Fields:
        """Show the statistics of a model, of one version of it, or of all models."""
        if not request.name:
            shown = [(model.name, model.version) for model in self._services.repository]
        else:
            model = self._find(request, incoming)
            versions = [model.version] if request.version else self._services.repository.versions(model.name)
            shown = [(model.name, version) for version in versions]
        counted = await asyncio.to_thread(self._services.telemetry.statistics.read, shown)
        return {"model_stats": [describe_statistics(one).model_dump() for one in counted]}

    async def _repository_index(self, request: Any, _incoming: Incoming) -> Fields:
        """List every version of every model, or those that are served."""
        services = self._services
        list_models = partial(services.repository.index, only_ready=request.ready)
        lines = await services.loading_threads.run(list_models)
        return {"models": [line.model_dump(exclude_none=True) for line in lines]}

    async def _repository_model_load(self, request: Any, incoming: Incoming) -> Fields:
        """Load or reload a model."""
        self._front.check_change(incoming.context)
        services, name = self._services, request.model_name
        repository, override = services.repository, parse_load_parameters(name, parameters_of(request))
        await services.loading_threads.run(lambda: repository.load(name, override, services.progress.check))
        return {}

    async def _repository_model_unload(self, request: Any, incoming: Incoming) -> Fields:
        """Stop serving a model; pipelines that run it are refused until it is loaded again."""
        self._front.check_change(incoming.context)
        repository, name = self._services.repository, request.model_name
        await self._services.loading_threads.run(lambda: repository.unload(name))
        return {}

    async def _trace_setting(self, request: Any, incoming: Incoming) -> Fields:
        """Show, or change, which runs are traced without a request asking for it."""
        scheduler = self._services.scheduler
        setting = scheduler.server_tracing
        if request.model_name:
            setting = scheduler.trace_setting(self._services.repository.find(request.model_name))
        values = {name: _setting(entry.value) for name, entry in request.settings.items()}
        if values:
            self._front.check_change(incoming.context)
            change_trace_setting(setting, values)
        fields = show_trace_setting(setting).model_dump().items()
        return {"settings": {name: {"value": _listed(value)} for name, value in fields}}

    async def _log_settings(self, request: Any, incoming: Incoming) -> Fields:
        """Show, or change, what is logged."""
        values = {name: parameter_of(entry) for name, entry in request.settings.items()}
        if values:
            self._front.check_change(incoming.context)
            change_log_settings(values)
        shown = show_log_settings().model_dump()
        return {"settings": {name: {_kind(value): value} for name, value in shown.items()}}

    def _find(self, request: Any, incoming: Incoming) -> LoadedModel:
        """Return the model that a request names.

        Raises:
            ServiceError: 404 or 503.
        """
        model = self._services.repository.find(request.name, request.version or None)
        incoming.context.model = model.name
        return model


def _response(name: str, make: Callable[[Any, Incoming], Awaitable[Fields]]) -> Handler:
    """Return what serves a call by the fields of its response.

    Args:
        name: the call, whose messages are `inference.{name}Request` and `…Response`.
        make: returns the fields of the response, from the request.
    """
    request_class = message_class(f"inference.{name}Request")
    response_class = message_class(f"inference.{name}Response")

    async def respond(incoming: Incoming) -> bytes:
        made = await make(parse(request_class, incoming.data, _MAX_BYTES), incoming)
        written: bytes = ParseDict(made, response_class(), ignore_unknown_fields=True).SerializeToString()
        return written

    return respond


async def _refuse_shared_memory(_incoming: Incoming) -> bytes:
    message = "shared memory is not served; send tensors as raw_input_contents"
    raise ServiceError(501, "call_not_served", message)


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
