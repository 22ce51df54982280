"""`/v2/logging`."""

from fastapi import APIRouter, Request

from service.routes.v2.document import read_document
from service.v2.log_settings import change_log_settings, show_log_settings
from service.v2.openapi import DOCUMENT_OPERATION, v2_errors
from service.v2.schemas import LogSettingView

router = APIRouter(tags=["v2"])


@router.get("/v2/logging", responses=v2_errors(500, 503))
async def show() -> LogSettingView:
    """Show the log settings."""
    return show_log_settings()


@router.post(
    "/v2/logging", responses=v2_errors(400, 408, 413, 500, 501, 503), openapi_extra=DOCUMENT_OPERATION
)
async def change(request: Request) -> LogSettingView:
    """Change the log settings."""
    return change_log_settings(await read_document(request))
