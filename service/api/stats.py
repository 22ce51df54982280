"""`GET /stats`: counters for charts."""

from time import monotonic

from fastapi import APIRouter, Request

from service.description.openapi import error_responses
from service.memory_trimmer import resident_bytes
from service.services import services_of
from service.telemetry.stats_view import StatsView, describe_models

router = APIRouter(tags=["monitoring"])


@router.get("/stats", responses=error_responses(500, 503))
def show_stats(request: Request) -> StatsView:
    """Show the counters of the server and of each model, as JSON for charts; `/metrics` has them for Prometheus."""
    services = services_of(request)
    settings, scheduler = services.settings, services.scheduler
    return StatsView(
        uptime_s=round(monotonic() - services.began, 3),
        memory_bytes=resident_bytes(),
        workers=settings.worker_count,
        busy=scheduler.busy_workers(),
        models=describe_models(services.loaded or (), scheduler, services.telemetry.statistics),
    )
