"""`GET /settings`: the settings in force."""

from fastapi import APIRouter, Request

from service.config.settings_view import SettingList, settings_in_force
from service.description.openapi import error_responses
from service.services import services_of

router = APIRouter(tags=["monitoring"])


@router.get("/settings", responses=error_responses(500, 503))
def show_settings(request: Request) -> SettingList:
    """Show the settings in force and where each comes from; secrets are left out."""
    return SettingList(settings=list(settings_in_force(services_of(request).settings)))
