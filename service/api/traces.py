"""`GET /traces` and `GET /traces/{request_id}`: the most recent traced runs."""

from functools import partial
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from service.context import context_of
from service.description.openapi import error_responses
from service.kept_traces import KeptTraces
from service.services import services_of
from service.telemetry.trace_view import ChromeTrace, TraceDetail, TraceList

TraceFormat = Annotated[
    Literal["json", "chrome"], Query(description="chrome: a trace event file, which ui.perfetto.dev opens")
]

router = APIRouter(tags=["monitoring"])


@router.get(
    "/traces",
    response_class=Response,
    responses={200: {"model": TraceList | ChromeTrace}, **error_responses(422, 500, 503)},
)
async def list_traces(request: Request, format: TraceFormat = "json") -> Response:
    """List the most recent traced runs, newest first, or draw them on one timeline.

    An API key gets the runs that it asked for, an admin key those of all keys.
    """
    services = services_of(request)
    client = _client_of(request)
    kept = KeptTraces(services, client)
    compute = kept.draw_all if format == "chrome" else kept.list_all
    content = await services.shared.get(("traces", format, client), compute)
    return _respond(content, format)


@router.get(
    "/traces/{request_id:path}",  # ids may have slashes
    response_class=Response,
    responses={200: {"model": TraceDetail | ChromeTrace}, **error_responses(404, 422, 500, 503)},
)
async def show_trace(request: Request, request_id: str, format: TraceFormat = "json") -> Response:
    """Show or draw the most recent traced run of a request; an API key sees its own requests only."""
    kept = KeptTraces(services_of(request), _client_of(request))
    show = partial(kept.show, request_id, is_drawn=format == "chrome")
    content = await to_thread.run_sync(show)
    return _respond(content, format)


def _client_of(request: Request) -> bytes | None:
    """Return whose runs a request may see, the digest of its API key; None: those of all."""
    context = context_of(request)
    return context.client if isinstance(context.client, bytes) and not context.is_admin else None


def _respond(content: bytes, format: TraceFormat) -> Response:
    headers = (
        {"Content-Disposition": 'attachment; filename="kuiper-trace.json"'} if format == "chrome" else {}
    )
    return Response(content, headers=headers, media_type="application/json")
