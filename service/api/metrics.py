"""`GET /metrics`: for Prometheus."""

from functools import partial

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from service.description.openapi import error_responses
from service.http.route_threads import sibling_threads
from service.http.sibling_call import is_for_sibling
from service.processes.messages import Call
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
    if is_for_sibling(request):
        await to_thread.run_sync(_publish, services, limiter=sibling_threads())
        return Response()
    wants_openmetrics = asks_for_openmetrics(", ".join(request.headers.getlist("accept")))
    text, media_type = await services.shared.get(
        ("metrics", wants_openmetrics), partial(_render, services, wants_openmetrics)
    )
    return Response(text, media_type=media_type)


def _render(services: Services, wants_openmetrics: bool) -> tuple[bytes, str]:
    telemetry, siblings = services.telemetry, services.siblings
    if telemetry.processes is None or siblings is None:
        return telemetry.metrics.render(services.snapshot(), wants_openmetrics=wants_openmetrics)
    alive = {reply.process for reply in siblings.ask_from_thread(Call("GET", "/metrics"))}
    return telemetry.processes.render(
        services.snapshot(), alive | {siblings.number}, wants_openmetrics=wants_openmetrics
    )


def _publish(services: Services) -> None:
    if services.telemetry.processes is not None:
        services.telemetry.processes.publish(services.snapshot())
