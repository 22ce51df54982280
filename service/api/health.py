"""`GET /livez` and `GET /readyz`: probes for whatever supervises the process."""

from fastapi import APIRouter, Request

from service.description.openapi import error_responses
from service.schemas import Health
from service.services import services_of

router = APIRouter(tags=["health"])


@router.get("/livez", responses=error_responses(500))
async def show_alive() -> Health:
    """Report that the process is alive."""
    return Health(status="alive")


@router.get("/readyz", responses=error_responses(500, 503))
async def show_ready(request: Request) -> Health:
    """Report whether requests are accepted: models are loaded and the server is not shutting down."""
    services_of(request).check_ready()
    return Health(status="ready")
