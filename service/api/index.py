"""`GET /`: the models and endpoints of the server; for browsers, the console."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from service.description.openapi import error_responses
from service.http.access import asks_for_page
from service.schemas import ServerIndex
from service.services import services_of

_VARY = {"Vary": "Accept"}

router = APIRouter(tags=["models"])


@router.get("/", response_model=ServerIndex, responses=error_responses(500, 503))
async def show_index(request: Request, response: Response) -> ServerIndex | Response:
    """List the models and endpoints of the server; browsers are redirected to the console."""
    services = services_of(request)
    if asks_for_page(request.headers.raw):
        return RedirectResponse("console", headers=_VARY)
    response.headers.update(_VARY)
    return ServerIndex(
        name=request.app.title,
        version=request.app.version,
        models=services.repository.names,
        endpoints=[
            *("/infer", "/v2", "/graph", "/models", "/metrics", "/traces", "/livez", "/readyz", "/docs"),
            "/console",
        ],
    )
