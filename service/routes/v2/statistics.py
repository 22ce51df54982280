"""`/v2/models/stats` and `/v2/models/M/stats`."""

from collections.abc import Sequence

from fastapi import APIRouter, Request

from service.routes.v2.model import find_model
from service.services import services_of
from service.v2.openapi import v2_errors
from service.v2.schemas import ModelStatisticsList
from service.v2.statistics import describe_statistics

router = APIRouter(tags=["v2"])

_ERRORS = v2_errors(400, 404, 500, 503)


@router.get("/v2/models/stats", responses=v2_errors(500, 503))
async def show_all(request: Request) -> ModelStatisticsList:
    """Show the statistics of every version of every model."""
    services = services_of(request)
    account = services.telemetry.statistics
    models = [account.of(model.name, model.version) for model in services.repository]
    return ModelStatisticsList(model_stats=[describe_statistics(model) for model in models])


@router.get("/v2/models/{name}/stats", responses=_ERRORS)
async def show_model(request: Request, name: str) -> ModelStatisticsList:
    """Show the statistics of all versions of a model."""
    find_model(request, name)
    return _describe(request, name, services_of(request).repository.versions(name))


@router.get("/v2/models/{name}/versions/{version}/stats", responses=_ERRORS)
async def show_version(request: Request, name: str, version: str) -> ModelStatisticsList:
    """Show the statistics of one version of a model."""
    return _describe(request, name, [find_model(request, name, version).version])


def _describe(request: Request, name: str, versions: Sequence[str]) -> ModelStatisticsList:
    account = services_of(request).telemetry.statistics
    return ModelStatisticsList(model_stats=[describe_statistics(account.of(name, one)) for one in versions])
