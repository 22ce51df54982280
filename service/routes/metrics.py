"""`GET /metrics`: for Prometheus."""

from fastapi import APIRouter, Request, Response

from service.description.openapi import error_responses
from service.services import services_of
from service.telemetry.server_state import read_server_state

_CONTENT = {kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")}

router = APIRouter(tags=["monitoring"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": _CONTENT}, **error_responses(500)},
)
def show_metrics(request: Request) -> Response:
    """Show the metrics in Prometheus' text format, or as OpenMetrics where `Accept` asks for it."""
    services = services_of(request)
    accept = ", ".join(request.headers.getlist("accept"))
    state = read_server_state(services.loaded or (), services.dispatcher, services.settings)
    text, media_type = services.telemetry.metrics.render(state, accept)
    return Response(text, media_type=media_type)
