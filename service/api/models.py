"""`GET /models`: the models that are served."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.context import context_of
from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.repository.model_entry import ModelEntry
from service.repository.schemas import ModelDetail, ModelList, ModelSummary
from service.repository.traffic_schemas import TrafficView
from service.services import Services, services_of
from service.traffic.view import describe_traffic

router = APIRouter(tags=["models"])


@router.get("/models", responses=error_responses(500, 503))
async def list_models(request: Request) -> ModelList:
    """List all models, including those that are not served."""
    services = services_of(request)
    entries = services.repository.entries
    return ModelList(models=[ModelSummary.of(entry, None, _traffic(services, entry)) for entry in entries])


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
    return ModelDetail.of(entry, version, _traffic(services, entry))


def _traffic(services: Services, entry: ModelEntry) -> TrafficView | None:
    traffic = services.traffic.of(entry)
    return None if traffic is None else describe_traffic(traffic)
