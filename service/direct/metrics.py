"""`GET /metrics`: for Prometheus. `routes/metrics.py` describes it."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from service.http.route_threads import sibling_threads
from service.http.sibling_call import is_for_sibling
from service.processes.messages import Call
from service.services import Services, services_of
from service.telemetry.metrics import asks_for_openmetrics


async def show_metrics(request: Request) -> Response:
    """Show the metrics in the text format of Prometheus, or as OpenMetrics if `Accept` asks for it."""
    services = services_of(request)
    if is_for_sibling(request):
        from anyio import to_thread  # noqa: PLC0415  # many servers have no siblings

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
