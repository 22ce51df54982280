"""`GET /models/{name}/traffic`, `POST` and `DELETE /models/{name}/traffic/rollback`."""

from fastapi import APIRouter, Request

from service.context import context_of
from service.description.openapi import error_responses
from service.errors import ServiceError
from service.http.sibling_call import is_for_sibling
from service.processes.messages import AGAIN
from service.repository.traffic_schemas import TrafficDetail
from service.rollback_news import ROLLBACK, follow
from service.services import services_of
from service.shared_traffic import SharedTraffic
from service.traffic.model_traffic import ModelTraffic

router = APIRouter(tags=["models"])

_ERRORS = error_responses(404, 500, 503)


@router.get("/models/{name}/traffic", responses=_ERRORS)
async def show_traffic(request: Request, name: str) -> TrafficDetail:
    """Show how the versions of a model share its requests, and how their answers differ."""
    traffic, shared = _find(request, name), SharedTraffic(services_of(request), is_for_sibling(request))
    return await shared.show(traffic)


@router.post("/models/{name}/traffic/rollback", responses=_ERRORS)
async def roll_back(request: Request, name: str) -> TrafficDetail:
    """Give all requests of a model that name no version to its stable version."""
    traffic, is_repeated = _find(request, name), _is_repeated(request)
    told = request.headers.get(ROLLBACK) if is_for_sibling(request) else None
    if told is None:
        traffic.roll_back_all("an administrator asked for it", is_repeated=is_repeated)
    else:
        await follow(services_of(request), traffic, told, is_repeated=is_repeated)
    return await SharedTraffic(services_of(request), is_repeated).show(traffic)


@router.delete("/models/{name}/traffic/rollback", responses=_ERRORS)
async def undo_rollback(request: Request, name: str) -> TrafficDetail:
    """Share the requests of a model by weight again."""
    traffic = _find(request, name)
    traffic.resume()
    return await SharedTraffic(services_of(request), _is_repeated(request)).show(traffic)


def _is_repeated(request: Request) -> bool:
    """Tell whether another process did the same before."""
    return is_for_sibling(request) and AGAIN in request.headers


def _find(request: Request, name: str) -> ModelTraffic:
    services = services_of(request)
    entry = services.repository.entry(name)
    traffic = services.traffic.of(entry)
    if traffic is None:
        message = f"model {entry.name!r} has no table [traffic] in its model.toml, or is not served"
        raise ServiceError(404, "no_traffic", message, {"model": entry.name})
    context_of(request).model = entry.name
    return traffic
