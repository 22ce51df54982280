"""`GET /docs`: the OpenAPI description for people, with forms that try each call, and files as examples of bodies."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from service.description.examples import example_file
from service.description.page import render_docs
from service.http.conditional import response_unless_known
from service.services import services_of
from service.tagged_document import tagged

_SERVICE = Path(__file__).parents[1]
_FILES = {
    "icon.svg": (_SERVICE / "console/icon.svg", "image/svg+xml"),
    "page.css": (_SERVICE / "description/assets/page.css", "text/css; charset=utf-8"),
    "try.js": (_SERVICE / "description/assets/try.js", "text/javascript; charset=utf-8"),
}
"""The page's files: where they are, and their media types."""
_HEADERS = {
    # only files of the server's own are loaded, and no text becomes a script, so that the name or description of a
    # model can do no harm
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def show_docs(request: Request) -> HTMLResponse:
    """Show operations, parameters, schemas and examples as a page."""
    app = request.app
    page = await services_of(request).shared.get("docs", lambda: render_docs(app.openapi()))
    return HTMLResponse(page, headers=_HEADERS)


@router.get("/docs/{file}")
def send_asset(request: Request, file: str) -> Response:
    """Send the style, the script or the icon of the page."""
    if file not in _FILES:
        raise HTTPException(404)
    path, media_type = _FILES[file]
    return response_unless_known(request, tagged(path.read_bytes()), media_type, _HEADERS)


@router.get("/docs/examples/{model}")
def send_example(
    request: Request, model: str, media_type: Annotated[str, Query(description="kind of the body")]
) -> Response:
    """Send the example of a binary body for a model, as a file."""
    content = example_file(services_of(request).repository.find(model), media_type)
    if content is None:
        raise HTTPException(404)
    return Response(content, media_type=media_type, headers=_HEADERS)
