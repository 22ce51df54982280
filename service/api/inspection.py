"""`GET /graph/operators/{name}`, `GET /graph/schedule`, `POST /expression`: what a model consists of, in detail."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from service.context import context_of
from service.description.openapi import MODEL_DESCRIPTION, VERSION_DESCRIPTION, error_responses
from service.errors import ServiceError
from service.http.body import read_body
from service.http.conditional import response_unless_known
from service.inspection.expression_view import describe_expression, read_question
from service.inspection.operator_view import describe_operator, find_operator
from service.inspection.schedule import MAX_STEPS, describe_schedule
from service.inspection.schemas import ExpressionQuestion, ExpressionResponse, OperatorDetail, ScheduleView
from service.repository.loaded_model import LoadedModel
from service.services import find_model, services_of
from service.tagged_document import TaggedDocument, tagged

Model = Annotated[str | None, Query(description=MODEL_DESCRIPTION)]
Version = Annotated[str | None, Query(description=VERSION_DESCRIPTION)]

_ERRORS = error_responses(404, 422, 500, 503, 504)

router = APIRouter(tags=["models"])


@router.get(
    "/graph/operators/{name:path}",  # names may have slashes
    response_class=Response,
    responses={200: {"model": OperatorDetail}, **_ERRORS},
)
async def show_operator(
    request: Request, name: str, model: Model = None, version: Version = None
) -> Response:
    """Show an operator of a model: parameters, operands, and the distribution of its weights."""
    services, context, loaded = services_of(request), context_of(request), find_model(request, model, version)
    make = partial(_document, partial(_operator, loaded, name))
    document = await services.inspections.run(context.client, make, services.settings.timeout)
    return response_unless_known(request, document, "application/json")


@router.get("/graph/schedule", response_class=Response, responses={200: {"model": ScheduleView}, **_ERRORS})
async def show_schedule(
    request: Request,
    model: Model = None,
    version: Version = None,
    first: Annotated[int, Query(ge=0, le=1_000_000, description="number of the first step")] = 0,
    count: Annotated[int, Query(ge=1, le=MAX_STEPS, description="maximum steps")] = MAX_STEPS,
) -> Response:
    """Show the execution order of a model: per step, the operator that runs and those that become ready."""
    loaded = find_model(request, model, version)
    services, context, key = services_of(request), context_of(request), ("schedule", first, count)
    document = services.documents.find(loaded, key)
    if document is None:
        make = partial(_document, partial(_schedule, loaded, first, count))
        document = await services.inspections.run(context.client, make, services.settings.timeout)
        services.documents.keep(loaded, key, document)
    return response_unless_known(request, document, "application/json")


@router.post(
    "/expression",
    response_class=Response,
    responses={200: {"model": ExpressionResponse}, **error_responses(400, 408, 413, 422, 500, 503, 504)},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ExpressionQuestion.model_json_schema()}},
        }
    },
)
async def explain_expression(request: Request) -> Response:
    """Explain a pnnx.Expression: tokens, tree, reverse Polish notation, and the steps of its evaluation."""
    services, context = services_of(request), context_of(request)
    settings = services.settings
    body = await read_body(request, settings.limits, settings.timeout, services.lifecycle)
    explain = partial(_explain, body)
    content = await services.inspections.run(context.client, explain, settings.timeout)
    return Response(content, media_type="application/json")


def _document(describe: Callable[[], dict[str, Any]]) -> TaggedDocument:
    return tagged(orjson.dumps(describe()))


def _operator(model: LoadedModel, name: str) -> dict[str, Any]:
    operator = find_operator(model, name)
    if operator is None:
        message = (
            f"model {model.name!r} has no operator {name[:80]!r}; GET /graph?model={model.name} lists them"
        )
        details = {"model": model.name, "operator": name[:200]}
        raise ServiceError(404, "operator_not_found", message, details)
    return describe_operator(model, operator)


def _schedule(model: LoadedModel, first: int, count: int) -> dict[str, Any]:
    return {"model": model.name, "version": model.version, **describe_schedule(model.graph, first, count)}


def _explain(body: bytes) -> bytes:
    question = read_question(body)
    return orjson.dumps(describe_expression(question.text, question.values))
