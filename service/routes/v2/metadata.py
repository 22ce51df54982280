"""`/v2`, `/v2/models/M` and `/v2/models/M/config`."""

from fastapi import APIRouter, Request

from service.repository.loaded_model import LoadedModel
from service.routes.v2.model import find_model
from service.scheduling.scheduling_policy import scheduling_policy
from service.services import services_of
from service.v2.metadata import describe_config, describe_model, describe_server
from service.v2.openapi import v2_errors
from service.v2.schemas import ModelConfiguration, ModelMetadata, ServerMetadata

router = APIRouter(tags=["v2"])

_ERRORS = v2_errors(400, 404, 500, 503)


@router.get("/v2/", include_in_schema=False)
@router.get("/v2", responses=v2_errors(500, 503))
async def show_server() -> ServerMetadata:
    """Describe the server and the extensions of the protocol that it supports."""
    return describe_server()


@router.get("/v2/models/{name}", responses=_ERRORS, response_model_exclude_none=True)
async def show_model(request: Request, name: str) -> ModelMetadata:
    """Describe a model: its versions, and its inputs and outputs with names, datatypes and shapes."""
    return _describe(request, find_model(request, name))


@router.get("/v2/models/{name}/versions/{version}", responses=_ERRORS, response_model_exclude_none=True)
async def show_version(request: Request, name: str, version: str) -> ModelMetadata:
    """Describe one version of a model."""
    return _describe(request, find_model(request, name, version))


@router.get("/v2/models/{name}/config", responses=_ERRORS, response_model_exclude_none=True)
async def show_config(request: Request, name: str) -> ModelConfiguration:
    """Describe a model's configuration in Triton's terms."""
    return _configuration(request, find_model(request, name))


@router.get(
    "/v2/models/{name}/versions/{version}/config", responses=_ERRORS, response_model_exclude_none=True
)
async def show_version_config(request: Request, name: str, version: str) -> ModelConfiguration:
    """Describe the configuration of one version of a model."""
    return _configuration(request, find_model(request, name, version))


def _describe(request: Request, model: LoadedModel) -> ModelMetadata:
    return describe_model(model, services_of(request).repository.versions(model.name))


def _configuration(request: Request, model: LoadedModel) -> ModelConfiguration:
    policy = scheduling_policy(model.config, services_of(request).settings, model.batching)
    return describe_config(model, policy)
