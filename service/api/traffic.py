"""`GET /models/{name}/traffic`."""

from fastapi import APIRouter, Request

from service.context import context_of
from service.description.openapi import error_responses
from service.errors import ServiceError
from service.repository.traffic_schemas import TrafficDetail
from service.services import services_of
from service.traffic.view import describe_traffic_in_detail

router = APIRouter(tags=["models"])


@router.get("/models/{name}/traffic", responses=error_responses(404, 500, 503))
async def show_traffic(request: Request, name: str) -> TrafficDetail:
    """Show how the versions of a model share its requests, and how their outputs differ."""
    services = services_of(request)
    entry = services.repository.entry(name)
    traffic = services.traffic.of(entry)
    if traffic is None:
        message = f"model {entry.name!r} has no table [traffic] in its model.toml, or is not served"
        raise ServiceError(404, "no_traffic", message, {"model": entry.name})
    context_of(request).model = entry.name
    return describe_traffic_in_detail(traffic)
