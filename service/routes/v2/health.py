"""`/v2/models/M/ready`, and the OpenAPI description of `/v2/health`, which `service/direct/health.py` answers."""

from fastapi import APIRouter, Request

from service.direct.health import show_v2_live, show_v2_ready
from service.routes.v2.model import find_model
from service.v2.openapi import v2_errors
from service.v2.schemas import Live, ModelReady, Ready

router = APIRouter(tags=["v2"])
router.add_api_route(
    "/v2/health/live", show_v2_live, name="show_live", response_model=Live, responses=v2_errors(500)
)
router.add_api_route(
    "/v2/health/ready", show_v2_ready, name="show_ready", response_model=Ready, responses=v2_errors(500, 503)
)


@router.get("/v2/models/{name}/ready", responses=v2_errors(400, 404, 500, 503))
async def show_model_ready(request: Request, name: str) -> ModelReady:
    """Report whether a model accepts requests."""
    return ModelReady(name=find_model(request, name).name)


@router.get("/v2/models/{name}/versions/{version}/ready", responses=v2_errors(400, 404, 500, 503))
async def show_version_ready(request: Request, name: str, version: str) -> ModelReady:
    """Report whether one version of a model accepts requests."""
    return ModelReady(name=find_model(request, name, version).name)
