"""`GET /graph`: shows a model's graph."""

from functools import partial
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service.context import context_of
from service.description.openapi import MODEL_DESCRIPTION, VERSION_DESCRIPTION, error_responses
from service.graph.document_cache import DocumentCache
from service.graph.drawing import draw_dot, draw_mermaid
from service.graph.layout_view import describe_layout
from service.graph.modules import Collapse
from service.graph.schemas import LayoutView
from service.graph.view import describe_graph
from service.graph.wiring import wiring_of
from service.http.conditional import response_unless_known
from service.repository.loaded_model import LoadedModel
from service.schemas import GraphView
from service.services import find_model, services_of
from service.tagged_document import TaggedDocument, tagged

DOT_TYPE = "text/vnd.graphviz"
MERMAID_TYPE = "text/vnd.mermaid"
_DRAWINGS = {"dot": (draw_dot, DOT_TYPE), "mermaid": (draw_mermaid, MERMAID_TYPE)}
_CONTENT = {kind: {"schema": {"type": "string"}} for kind in (DOT_TYPE, MERMAID_TYPE)}
_NAMES_LENGTH = 2000
"""Maximum characters of a list of modules."""

router = APIRouter(tags=["models"])


@router.get(
    "/graph",
    response_class=Response,
    responses={
        200: {"model": GraphView | LayoutView, "content": _CONTENT},
        **error_responses(404, 422, 500, 503, 504),
    },
)
async def show_graph(
    request: Request,
    model: Annotated[str | None, Query(description=MODEL_DESCRIPTION)] = None,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
    format: Annotated[
        Literal["json", "dot", "mermaid", "layout"],
        Query(description="notation of the response; layout: where to draw operators and lines"),
    ] = "json",
    collapse: Annotated[
        Collapse,
        Query(
            description="of layout: which modules are one node; auto: from 150 operators on, as many as need be"
        ),
    ] = "auto",
    expanded: Annotated[
        str,
        Query(description="of layout: modules that are open, separated by commas", max_length=_NAMES_LENGTH),
    ] = "",
    collapsed: Annotated[
        str,
        Query(
            description="of layout: modules that are closed, separated by commas", max_length=_NAMES_LENGTH
        ),
    ] = "",
) -> Response:
    """Show the graph of a model: operators, operands and execution order, as JSON or as a drawing."""
    services = services_of(request)
    loaded, context = find_model(request, model, version), context_of(request)
    if format != "layout":
        return await run_in_threadpool(_draw, loaded, format)
    asked = collapse, expanded, collapsed  # as text: sets of names take many times the memory
    document = services.documents.find(loaded, asked)
    if document is None:
        lay_out = partial(_lay_out, loaded, asked, services.documents)
        document = await services.inspections.run(context.client, lay_out, services.settings.timeout)
    return response_unless_known(request, document, "application/json")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) - {""}


def _draw(loaded: LoadedModel, format: str) -> Response:
    description = describe_graph(loaded.graph)
    if format == "json":
        head = {"model": loaded.name, "version": loaded.version}
        return Response(orjson.dumps(head | description), media_type="application/json")
    draw, media_type = _DRAWINGS[format]
    return Response(draw(description, loaded.name), media_type=media_type)


def _lay_out(loaded: LoadedModel, asked: tuple[Collapse, str, str], cache: DocumentCache) -> TaggedDocument:
    collapse, expanded, collapsed = asked
    wiring = wiring_of(loaded.graph)
    head = {"model": loaded.name, "version": loaded.version, "operator_count": len(wiring.names)}
    layout = describe_layout(wiring, collapse, _names(expanded), _names(collapsed))
    document = tagged(orjson.dumps(head | layout))
    cache.keep(loaded, asked, document)
    return document
