"""`GET /metrics`: for Prometheus."""

from functools import partial

from fastapi import APIRouter, Request, Response

from service.description.openapi import error_responses
from service.services import Services, services_of
from service.telemetry.metrics import asks_for_openmetrics

_CONTENT = {kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")}

router = APIRouter(tags=["monitoring"])


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": _CONTENT}, **error_responses(500)}
)
async def show_metrics(request: Request) -> Response:
    """Show the metrics in the text format of Prometheus, or as OpenMetrics if `Accept` asks for it."""
    services = services_of(request)
    wants_openmetrics = asks_for_openmetrics(", ".join(request.headers.getlist("accept")))
    text, media_type = await services.shared.get(
        ("metrics", wants_openmetrics), partial(_render, services, wants_openmetrics)
    )
    return Response(text, media_type=media_type)


def _render(services: Services, wants_openmetrics: bool) -> tuple[bytes, str]:
    return services.telemetry.metrics.render(services.snapshot(), wants_openmetrics=wants_openmetrics)
