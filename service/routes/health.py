"""`GET /livez` and `GET /readyz`: for whoever watches over the process."""

from fastapi import APIRouter, Request

from service.description.openapi import error_responses
from service.errors import ServiceError
from service.lifecycle import Phase
from service.scheduling.refusals import shutting_down
from service.schemas import Health
from service.services import services_of

router = APIRouter(tags=["health"])


@router.head("/livez", include_in_schema=False)
@router.get("/livez", responses=error_responses(500))
async def show_alive() -> Health:
    """Tell that the process lives."""
    return Health(status="alive")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=error_responses(500, 503))
async def show_ready(request: Request) -> Health:
    """Tell whether requests are accepted: models are loaded and the server is not shutting down."""
    phase = services_of(request).lifecycle.phase
    if phase is Phase.DRAINING:
        raise shutting_down()
    if phase is Phase.STARTING:
        raise ServiceError(503, "not_ready", "the models are not loaded yet", headers={"Retry-After": "1"})
    return Health(status="ready")
