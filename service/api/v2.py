"""The Open Inference Protocol (v2): inference, health, metadata, statistics, the repository, trace and log settings."""

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Depends, Request, Response

from service.api.infer import run_model
from service.config.override import parse_load_parameters
from service.http.document import read_document
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import IndexLine
from service.services import find_model, services_of
from service.v2.document import Document, member
from service.v2.exchange import V2Exchange
from service.v2.log_settings import change_log_settings, show_log_settings
from service.v2.metadata import describe_config, describe_model, describe_server
from service.v2.openapi import DOCUMENT_OPERATION, INFER_OPERATION, INFER_RESPONSES, v2_errors
from service.v2.schemas import (
    EmptyResponse,
    Live,
    LogSettingView,
    ModelConfiguration,
    ModelMetadata,
    ModelReady,
    ModelStatisticsList,
    Ready,
    ServerMetadata,
    TraceSettingView,
)
from service.v2.statistics import describe_statistics
from service.v2.trace_settings import change_trace_setting, show_trace_setting

_MODEL_ERRORS = v2_errors(400, 404, 500, 503)
_LOAD_ERRORS = v2_errors(400, 403, 404, 408, 413, 500, 501, 503)
_CHANGE_ERRORS = v2_errors(400, 408, 413, 500, 501, 503)

router = APIRouter(tags=["v2"])


async def check_change(request: Request) -> None:
    """Check whether a request may change the server, which one of several processes would do alone.

    Raises:
        ServiceError: 403 `needs_one_process`.
    """
    services_of(request).check_change()


_CHANGE = [Depends(check_change)]


@router.post(
    "/v2/models/{name}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer(request: Request, name: str) -> Response:
    """Run a model on the inputs of one request, JSON or binary tensor data."""
    return await run_model(request, name, None, V2Exchange)


@router.post(
    "/v2/models/{name}/versions/{version}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer_version(request: Request, name: str, version: str) -> Response:
    """Run one version of a model on the inputs of one request, JSON or binary tensor data."""
    return await run_model(request, name, version, V2Exchange)


@router.get("/v2/health/live", responses=v2_errors(500))
async def show_live() -> Live:
    """Report that the process is alive."""
    return Live()


@router.get("/v2/health/ready", responses=v2_errors(500, 503))
async def show_ready(request: Request) -> Ready:
    """Report whether requests are accepted."""
    services_of(request).check_ready()
    return Ready()


@router.get("/v2/models/{name}/ready", responses=_MODEL_ERRORS)
async def show_model_ready(request: Request, name: str) -> ModelReady:
    """Report whether a model accepts requests."""
    return ModelReady(name=find_model(request, name).name)


@router.get("/v2/models/{name}/versions/{version}/ready", responses=_MODEL_ERRORS)
async def show_version_ready(request: Request, name: str, version: str) -> ModelReady:
    """Report whether one version of a model accepts requests."""
    return ModelReady(name=find_model(request, name, version).name)


@router.get("/v2/models/stats", name="show_all", responses=v2_errors(500, 503))  # before a model's metadata
def show_all_statistics(request: Request) -> ModelStatisticsList:
    """Show the statistics of every version of every model."""
    return _statistics(request, [(model.name, model.version) for model in services_of(request).repository])


@router.get("/v2/models/{name}/stats", name="show_model", responses=_MODEL_ERRORS)
def show_model_statistics(request: Request, name: str) -> ModelStatisticsList:
    """Show the statistics of all versions of a model."""
    find_model(request, name)
    return _statistics(request, [(name, one) for one in services_of(request).repository.versions(name)])


@router.get("/v2/models/{name}/versions/{version}/stats", name="show_version", responses=_MODEL_ERRORS)
def show_version_statistics(request: Request, name: str, version: str) -> ModelStatisticsList:
    """Show the statistics of one version of a model."""
    return _statistics(request, [(name, find_model(request, name, version).version)])


@router.get("/v2/", include_in_schema=False)
@router.get("/v2", responses=v2_errors(500, 503))
async def show_server() -> ServerMetadata:
    """Describe the server and the extensions of the protocol that it supports."""
    return describe_server()


@router.get("/v2/models/{name}", responses=_MODEL_ERRORS, response_model_exclude_none=True)
async def show_model(request: Request, name: str) -> ModelMetadata:
    """Describe a model: its versions, and its inputs and outputs with names, datatypes and shapes."""
    return _metadata(request, find_model(request, name))


@router.get("/v2/models/{name}/versions/{version}", responses=_MODEL_ERRORS, response_model_exclude_none=True)
async def show_version(request: Request, name: str, version: str) -> ModelMetadata:
    """Describe one version of a model."""
    return _metadata(request, find_model(request, name, version))


@router.get("/v2/models/{name}/config", responses=_MODEL_ERRORS, response_model_exclude_none=True)
async def show_config(request: Request, name: str) -> ModelConfiguration:
    """Describe a model's configuration in Triton's terms."""
    return _configuration(request, find_model(request, name))


@router.get(
    "/v2/models/{name}/versions/{version}/config", responses=_MODEL_ERRORS, response_model_exclude_none=True
)
async def show_version_config(request: Request, name: str, version: str) -> ModelConfiguration:
    """Describe the configuration of one version of a model."""
    return _configuration(request, find_model(request, name, version))


@router.post(
    "/v2/repository/index",
    responses=_CHANGE_ERRORS,
    openapi_extra=DOCUMENT_OPERATION,
    response_model_exclude_none=True,
)
async def show_index(request: Request) -> list[IndexLine]:
    """List every version of every model, also those that are not served; `{"ready": true}` omits these."""
    document = await read_document(request)
    only_ready = bool(member(document, "ready", bool, ""))
    services = services_of(request)
    return await services.loading_threads.run(partial(services.repository.index, only_ready=only_ready))


@router.post(
    "/v2/repository/models/{name}/load",
    responses=_LOAD_ERRORS,
    openapi_extra=DOCUMENT_OPERATION,
    dependencies=_CHANGE,
)
async def load(request: Request, name: str) -> EmptyResponse:
    """Load or reload a model; the old versions are served until the new ones are ready."""
    services = services_of(request)
    repository = services.repository
    override = parse_load_parameters(name, await _read_parameters(request))
    await services.loading_threads.run(lambda: repository.load(name, override, services.progress.check))
    return EmptyResponse()


@router.post(
    "/v2/repository/models/{name}/unload",
    responses=_LOAD_ERRORS,
    openapi_extra=DOCUMENT_OPERATION,
    dependencies=_CHANGE,
)
async def unload(request: Request, name: str) -> EmptyResponse:
    """Unload a model; queued requests are still processed."""
    services = services_of(request)
    repository = services.repository
    # pipelines that run the model stay, and are refused until it is loaded again, whatever this says
    member(await _read_parameters(request), "unload_dependents", bool, "parameters.")
    await services.loading_threads.run(lambda: repository.unload(name))
    return EmptyResponse()


@router.get("/v2/trace/setting", name="show", responses=v2_errors(500, 503))
async def show_tracing(request: Request) -> TraceSettingView:
    """Show the trace settings, for models without settings of their own."""
    return show_trace_setting(services_of(request).scheduler.server_tracing)


@router.post(
    "/v2/trace/setting",
    name="change",
    responses=_CHANGE_ERRORS,
    openapi_extra=DOCUMENT_OPERATION,
    dependencies=_CHANGE,
)
async def change_tracing(request: Request) -> TraceSettingView:
    """Change the trace settings; null restores the value at the start."""
    setting = services_of(request).scheduler.server_tracing
    return change_trace_setting(setting, await read_document(request))


@router.get("/v2/models/{name}/trace/setting", name="show_of_model", responses=_MODEL_ERRORS)
async def show_model_tracing(request: Request, name: str) -> TraceSettingView:
    """Show the trace settings of a model."""
    return show_trace_setting(services_of(request).scheduler.trace_setting(find_model(request, name)))


@router.post(
    "/v2/models/{name}/trace/setting",
    name="change_of_model",
    responses=v2_errors(400, 404, 408, 413, 500, 501, 503),
    openapi_extra=DOCUMENT_OPERATION,
    dependencies=_CHANGE,
)
async def change_model_tracing(request: Request, name: str) -> TraceSettingView:
    """Change the trace settings of a model; null restores the server's setting."""
    setting = services_of(request).scheduler.trace_setting(find_model(request, name))
    return change_trace_setting(setting, await read_document(request))


@router.get("/v2/logging", name="show", responses=v2_errors(500, 503))
async def show_logging() -> LogSettingView:
    """Show the log settings."""
    return show_log_settings()


@router.post(
    "/v2/logging",
    name="change",
    responses=_CHANGE_ERRORS,
    openapi_extra=DOCUMENT_OPERATION,
    dependencies=_CHANGE,
)
async def change_logging(request: Request) -> LogSettingView:
    """Change the log settings."""
    return change_log_settings(await read_document(request))


def _metadata(request: Request, model: LoadedModel) -> ModelMetadata:
    return describe_model(model, services_of(request).repository.versions(model.name))


def _configuration(request: Request, model: LoadedModel) -> ModelConfiguration:
    return describe_config(model, services_of(request).settings)


def _statistics(request: Request, versions: Sequence[tuple[str, str]]) -> ModelStatisticsList:
    counted = services_of(request).telemetry.statistics.read(versions)
    return ModelStatisticsList(model_stats=[describe_statistics(one) for one in counted])


async def _read_parameters(request: Request) -> Document:
    parameters: Document = member(await read_document(request), "parameters", dict, "") or {}
    return parameters
