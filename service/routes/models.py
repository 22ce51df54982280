"""`GET /models`: the models that are served."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.context import context_of
from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.repository.schemas import ModelDetail, ModelList, ModelSummary
from service.services import services_of

router = APIRouter(tags=["models"])


@router.get("/models", responses=error_responses(500, 503))
async def list_models(request: Request) -> ModelList:
    """List all models, including those that are not served."""
    repository = services_of(request).repository
    return ModelList(models=[ModelSummary.of(entry) for entry in repository.entries])


@router.get("/models/{name}", responses=error_responses(404, 422, 500, 503))
async def show_model(
    request: Request,
    name: str,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
) -> ModelDetail:
    """Show one model: its inputs, outputs, size, state, versions and labels."""
    entry = services_of(request).repository.entry(name)
    if entry.versions:
        context_of(request).model = entry.name
    return ModelDetail.of(entry, version)
