"""`GET /models/{name}/traffic`, `POST` and `DELETE /models/{name}/traffic/rollback`."""

from fastapi import APIRouter, Request

from service.context import context_of
from service.description.openapi import error_responses
from service.errors import ServiceError
from service.repository.traffic_schemas import TrafficDetail
from service.services import services_of
from service.traffic.model_traffic import ModelTraffic
from service.traffic.view import describe_traffic_in_detail

router = APIRouter(tags=["models"])

_ERRORS = error_responses(404, 500, 503)


@router.get("/models/{name}/traffic", responses=_ERRORS)
async def show_traffic(request: Request, name: str) -> TrafficDetail:
    """Show how the versions of a model share its requests, and how their answers differ."""
    return describe_traffic_in_detail(_find(request, name))


@router.post("/models/{name}/traffic/rollback", responses=_ERRORS)
async def roll_back(request: Request, name: str) -> TrafficDetail:
    """Give all requests of a model that name no version to its stable version."""
    traffic = _find(request, name)
    traffic.roll_back_all("an administrator asked for it")
    return describe_traffic_in_detail(traffic)


@router.delete("/models/{name}/traffic/rollback", responses=_ERRORS)
async def undo_rollback(request: Request, name: str) -> TrafficDetail:
    """Share the requests of a model by weight again."""
    traffic = _find(request, name)
    traffic.resume()
    return describe_traffic_in_detail(traffic)


def _find(request: Request, name: str) -> ModelTraffic:
    services = services_of(request)
    entry = services.repository.entry(name)
    traffic = services.traffic.of(entry)
    if traffic is None:
        message = f"model {entry.name!r} has no table [traffic] in its model.toml, or is not served"
        raise ServiceError(404, "no_traffic", message, {"model": entry.name})
    context_of(request).model = entry.name
    return traffic
