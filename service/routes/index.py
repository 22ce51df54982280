"""`GET /`: the models and endpoints of the server."""

from fastapi import APIRouter, Request

from service.description.openapi import error_responses
from service.schemas import ServerIndex
from service.services import services_of

router = APIRouter(tags=["models"])


@router.get("/", responses=error_responses(500, 503))
async def show_index(request: Request) -> ServerIndex:
    """Name the server, its models and its endpoints."""
    return ServerIndex(
        name=request.app.title,
        version=request.app.version,
        models=services_of(request).repository.names,
        endpoints=["/infer", "/v2", "/graph", "/models", "/metrics", "/traces", "/livez", "/readyz", "/docs"],
    )
