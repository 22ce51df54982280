"""`GET /models`: the models that are served."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.context import context_of
from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.http.sibling_call import is_for_sibling
from service.repository.schemas import ModelDetail, ModelList, ModelSummary
from service.services import services_of
from service.shared_traffic import SharedTraffic

router = APIRouter(tags=["models"])


@router.get("/models", responses=error_responses(500, 503))
async def list_models(request: Request) -> ModelList:
    """List all models, including those that are not served."""
    services = services_of(request)
    entries = services.repository.entries
    traffic = await SharedTraffic(services, is_for_sibling(request)).show_all(entries)
    return ModelList(models=[ModelSummary.of(entry, None, traffic.get(entry.name)) for entry in entries])


@router.get("/models/{name}", responses=error_responses(404, 422, 500, 503))
async def show_model(
    request: Request,
    name: str,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
) -> ModelDetail:
    """Show one model: its inputs, outputs, size, state, versions and labels."""
    services = services_of(request)
    entry = services.repository.entry(name)
    if entry.versions:
        context_of(request).model = entry.name
    traffic = await SharedTraffic(services, is_for_sibling(request)).show_all([entry])
    return ModelDetail.of(entry, version, traffic.get(entry.name))
