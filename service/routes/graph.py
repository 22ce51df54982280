"""`GET /graph`: shows a model's graph."""

from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response

from service.context import context_of
from service.description.openapi import MODEL_DESCRIPTION, VERSION_DESCRIPTION, error_responses
from service.graph.drawing import draw_dot, draw_mermaid
from service.graph.view import describe_graph
from service.schemas import GraphView
from service.services import services_of

DOT_TYPE = "text/vnd.graphviz"
MERMAID_TYPE = "text/vnd.mermaid"
_DRAWINGS = {"dot": (draw_dot, DOT_TYPE), "mermaid": (draw_mermaid, MERMAID_TYPE)}
_CONTENT = {kind: {"schema": {"type": "string"}} for kind in (DOT_TYPE, MERMAID_TYPE)}

router = APIRouter(tags=["models"])


@router.get(
    "/graph",
    response_class=Response,
    responses={200: {"model": GraphView, "content": _CONTENT}, **error_responses(404, 422, 500, 503)},
)
def show_graph(
    request: Request,
    model: Annotated[str | None, Query(description=MODEL_DESCRIPTION)] = None,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
    format: Annotated[
        Literal["json", "dot", "mermaid"], Query(description="notation of the answer")
    ] = "json",
) -> Response:
    """Show a model's operators, operands and execution order, as JSON or as a drawing."""
    loaded = services_of(request).repository.find(model, version)
    context_of(request).model = loaded.name
    description = describe_graph(loaded.graph)
    if format == "json":
        head = {"model": loaded.name, "version": loaded.version}
        return Response(orjson.dumps(head | description), media_type="application/json")
    draw, media_type = _DRAWINGS[format]
    return Response(draw(description, loaded.name), media_type=media_type)
