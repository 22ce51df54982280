"""`GET /metrics`: for Prometheus."""

from fastapi import APIRouter, Request, Response

from service.description.openapi import error_responses
from service.services import services_of
from service.telemetry.metrics import take_snapshot

_CONTENT = {kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")}

router = APIRouter(tags=["monitoring"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": _CONTENT}, **error_responses(500)},
)
def show_metrics(request: Request) -> Response:
    """Show the metrics in the text format of Prometheus, or as OpenMetrics if `Accept` asks for it."""
    services = services_of(request)
    telemetry = services.telemetry
    snapshot = take_snapshot(
        services.loaded or (),
        services.dispatcher,
        services.settings,
        telemetry.statistics,
        telemetry.http_durations,
    )
    accept = ", ".join(request.headers.getlist("accept"))
    text, media_type = telemetry.metrics.render(snapshot, accept)
    return Response(text, media_type=media_type)
