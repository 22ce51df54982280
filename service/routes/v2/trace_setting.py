"""`/v2/trace/setting` and `/v2/models/M/trace/setting`."""

from fastapi import APIRouter, Request

from service.routes.v2.document import read_document
from service.routes.v2.model import find_model
from service.scheduling.trace_setting import TraceSetting
from service.services import services_of
from service.v2.openapi import DOCUMENT_OPERATION, v2_errors
from service.v2.schemas import TraceSettingView
from service.v2.trace_settings import change_trace_setting, show_trace_setting

router = APIRouter(tags=["v2"])

_CHANGE_ERRORS = v2_errors(400, 408, 413, 500, 501, 503)
_CHANGE_MODEL_ERRORS = v2_errors(400, 404, 408, 413, 500, 501, 503)


@router.get("/v2/trace/setting", responses=v2_errors(500, 503))
async def show(request: Request) -> TraceSettingView:
    """Show which runs are traced without a request asking for it, for models without a setting of their own."""
    return show_trace_setting(services_of(request).dispatcher.server_tracing)


@router.post("/v2/trace/setting", responses=_CHANGE_ERRORS, openapi_extra=DOCUMENT_OPERATION)
async def change(request: Request) -> TraceSettingView:
    """Change which runs are traced without a request asking for it; null restores the value at the start."""
    services = services_of(request)
    values = await read_document(request)
    start = TraceSetting(services.settings.trace_rate)
    return change_trace_setting(services.dispatcher.server_tracing, start, values)


@router.get("/v2/models/{name}/trace/setting", responses=v2_errors(400, 404, 500, 503))
async def show_of_model(request: Request, name: str) -> TraceSettingView:
    """Show which runs of a model are traced without a request asking for it."""
    return show_trace_setting(services_of(request).dispatcher.trace_setting(find_model(request, name, None)))


@router.post(
    "/v2/models/{name}/trace/setting", responses=_CHANGE_MODEL_ERRORS, openapi_extra=DOCUMENT_OPERATION
)
async def change_of_model(request: Request, name: str) -> TraceSettingView:
    """Change which runs of a model are traced without a request asking for it; null restores the server's setting."""
    dispatcher = services_of(request).dispatcher
    setting = dispatcher.trace_setting(find_model(request, name, None))
    values = await read_document(request)
    return change_trace_setting(setting, dispatcher.server_tracing.for_model(), values)
