"""An endpoint: `GET /models/{name}/labels` returns the names of a model's classes as text, one per line."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from service.api import ROUTERS
from service.description.openapi import error_responses
from service.errors import ServiceError
from service.services import services_of

router = APIRouter(tags=["models"])


@router.get(
    "/models/{name}/labels", response_class=PlainTextResponse, responses=error_responses(404, 500, 503)
)
async def show_labels(request: Request, name: str) -> PlainTextResponse:
    """Show the names of a model's classes, in order of index."""
    labels = services_of(request).repository.find(name, None).config.labels
    if labels is None:
        raise ServiceError(404, "no_labels", f"model {name} has no labels", {"model": name})
    return PlainTextResponse("\n".join([*labels, ""]))


ROUTERS.append(router)
