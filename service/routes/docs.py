"""`GET /docs`: the OpenAPI description for people."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.description.page import render_docs

_HEADERS = {
    # nothing is loaded, run or sent, so that the name or description of a model can do no harm
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def show_docs(request: Request) -> HTMLResponse:
    """Show operations, parameters, schemas and examples as a page."""
    return HTMLResponse(render_docs(request.app.openapi()), headers=_HEADERS)
