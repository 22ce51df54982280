"""`/v2/health/live`, `/v2/health/ready` and `/v2/models/M/ready`."""

from fastapi import APIRouter, Request

from service.routes.v2.model import find_model
from service.services import services_of
from service.v2.openapi import v2_errors
from service.v2.schemas import Live, ModelReady, Ready

router = APIRouter(tags=["v2"])


@router.get("/v2/health/live", responses=v2_errors(500))
async def show_live() -> Live:
    """Report that the process is alive."""
    return Live()


@router.get("/v2/health/ready", responses=v2_errors(500, 503))
async def show_ready(request: Request) -> Ready:
    """Report whether requests are accepted."""
    services_of(request).check_ready()
    return Ready()


@router.get("/v2/models/{name}/ready", responses=v2_errors(400, 404, 500, 503))
async def show_model_ready(request: Request, name: str) -> ModelReady:
    """Report whether a model accepts requests."""
    return ModelReady(name=find_model(request, name).name)


@router.get("/v2/models/{name}/versions/{version}/ready", responses=v2_errors(400, 404, 500, 503))
async def show_version_ready(request: Request, name: str, version: str) -> ModelReady:
    """Report whether one version of a model accepts requests."""
    return ModelReady(name=find_model(request, name, version).name)
