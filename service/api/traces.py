"""`GET /traces` and `GET /traces/{request_id}`: the most recent traced runs."""

from typing import Annotated, Literal

import orjson
from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response

from service.context import context_of
from service.description.openapi import error_responses
from service.errors import ServiceError
from service.services import Services, services_of
from service.telemetry.chrome_trace import chrome_trace
from service.telemetry.trace_view import ChromeTrace, TraceDetail, TraceList, describe, summarize

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
    content = await services.shared.get(("traces", format, client), lambda: _list(services, client, format))
    return _respond(content, format)


@router.get(
    "/traces/{request_id:path}",  # ids may have slashes
    response_class=Response,
    responses={200: {"model": TraceDetail | ChromeTrace}, **error_responses(404, 422, 500, 503)},
)
async def show_trace(request: Request, request_id: str, format: TraceFormat = "json") -> Response:
    """Show or draw the most recent traced run of a request; an API key sees its own requests only."""
    services, client = services_of(request), _client_of(request)
    content = await to_thread.run_sync(lambda: _show(services, client, request_id, format))
    return _respond(content, format)


def _client_of(request: Request) -> bytes | None:
    """Return whose runs a request may see, the digest of its API key; None: those of all."""
    context = context_of(request)
    return context.client if isinstance(context.client, bytes) and not context.is_admin else None


def _list(services: Services, client: bytes | None, format: str) -> bytes:
    runs = services.telemetry.recent.newest_first(client)
    if format == "chrome":
        return _dump(chrome_trace(runs))
    return _dump({"traces": [summarize(run, services.process) for run in runs]})


def _show(services: Services, client: bytes | None, request_id: str, format: str) -> bytes:
    """Return the newest run of a request.

    Raises:
        ServiceError: 404 `trace_not_found`.
    """
    run, process = services.telemetry.recent.find(request_id, client), services.process
    if run is None:
        message = f"no trace of a request {request_id[:80]!r}; GET /traces lists the stored ones"
        if process is not None:
            message += (
                f"; this is process {process}, and another process of the server may hold the trace: repeat "
                "on a new connection, or serve with one process"
            )
        raise ServiceError(404, "trace_not_found", message, {"request_id": request_id[:128]})
    if format == "chrome":
        return _dump(chrome_trace([run]))
    shadow = services.traffic.find_shadow_run(run.model, run.request_id)
    return _dump(describe(run, shadow, process))


def _dump(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def _respond(content: bytes, format: TraceFormat) -> Response:
    headers = (
        {"Content-Disposition": 'attachment; filename="kuiper-trace.json"'} if format == "chrome" else {}
    )
    return Response(content, headers=headers, media_type="application/json")
