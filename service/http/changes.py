"""Refuses requests that change the server where several processes would have to change alike."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import ServiceError
from service.http.error_handlers import error_response, format_error
from service.http.paths import is_admin_call


class ChangeMiddleware:
    """Refuses requests that load or unload a model, or change trace or log settings.

    Args:
        app: handles all other requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        app = self._app
        if scope["type"] == "http" and is_admin_call(scope["method"], scope["path"]):
            app = error_response(format_error(needs_one_process(), scope["path"]))
        await app(scope, receive, send)


def needs_one_process() -> ServiceError:
    """Return the error of a change that one of several processes would make alone."""
    message = (
        "with several processes, models, trace and log settings do not change by API; change the model folder with "
        "--model-control poll, or change the settings and send SIGHUP to the supervisor process"
    )
    return ServiceError(403, "needs_one_process", message)
