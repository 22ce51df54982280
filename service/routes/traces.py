"""`GET /traces` and `GET /traces/{request_id}`: the most recent traced runs."""

from collections.abc import Iterable
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response

from service.description.openapi import error_responses
from service.errors import ServiceError
from service.services import services_of
from service.telemetry.chrome_trace import chrome_trace
from service.telemetry.recent_runs import RecentRun
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
    """List the most recent traced runs, newest first, or draw them all on one timeline."""
    services = services_of(request)
    draw = _draw if format == "chrome" else _list
    content = await services.shared.get(
        ("traces", format), lambda: draw(services.telemetry.recent.newest_first())
    )
    return _answer(content, format)


@router.get(
    "/traces/{request_id:path}",  # ids may have slashes
    response_class=Response,
    responses={200: {"model": TraceDetail | ChromeTrace}, **error_responses(404, 422, 500, 503)},
)
def show_trace(request: Request, request_id: str, format: TraceFormat = "json") -> Response:
    """Show or draw the most recent traced run of a request."""
    services = services_of(request)
    run = services.telemetry.recent.find(request_id)
    if run is None:
        message = f"no traced run of a request {request_id[:80]!r} is kept; GET /traces lists those that are"
        raise ServiceError(404, "trace_not_found", message, {"request_id": request_id[:128]})
    shadow = services.traffic.find_shadow_run(run.record.model, request_id)
    return _answer(_draw([run]) if format == "chrome" else _dump(describe(run, shadow)), format)


def _list(runs: Iterable[RecentRun]) -> bytes:
    return _dump({"traces": [summarize(run) for run in runs]})


def _draw(runs: Iterable[RecentRun]) -> bytes:
    return _dump(chrome_trace(runs))


def _dump(content: object) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def _answer(content: bytes, format: TraceFormat) -> Response:
    headers = (
        {"Content-Disposition": 'attachment; filename="kuiper-trace.json"'} if format == "chrome" else {}
    )
    return Response(content, headers=headers, media_type="application/json")
