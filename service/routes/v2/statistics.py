"""`/v2/models/stats` and `/v2/models/M/stats`."""

from fastapi import APIRouter, Request

from service.routes.v2.model import find_model
from service.services import services_of
from service.v2.openapi import v2_errors
from service.v2.schemas import StatisticsView
from service.v2.statistics import describe_statistics

router = APIRouter(tags=["v2"])

_ERRORS = v2_errors(400, 404, 500, 503)


@router.get("/v2/models/stats", responses=v2_errors(500, 503))
async def show_all(request: Request) -> StatisticsView:
    """Show what every version of every model did."""
    services = services_of(request)
    account = services.telemetry.statistics
    models = [account.of(model.name, model.version) for model in services.repository]
    return StatisticsView(model_stats=[describe_statistics(model) for model in models])


@router.get("/v2/models/{name}/stats", responses=_ERRORS)
@router.get("/v2/models/{name}/versions/{version}/stats", responses=_ERRORS)
async def show_model(request: Request, name: str, version: str | None = None) -> StatisticsView:
    """Show what a model did: all its versions, or one."""
    services = services_of(request)
    model = find_model(request, name, version)
    versions = [model.version] if version is not None else services.repository.versions(model.name)
    account = services.telemetry.statistics
    return StatisticsView(model_stats=[describe_statistics(account.of(model.name, one)) for one in versions])
