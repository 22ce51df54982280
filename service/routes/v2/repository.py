"""`POST /v2/repository/index`, `…/models/M/load` and `…/models/M/unload`."""

from fastapi import APIRouter, Request

from service.config.override import parse_load_parameters
from service.routes.v2.document import read_document
from service.services import services_of
from service.v2.document import Document, member
from service.v2.openapi import DOCUMENT_OPERATION, v2_errors
from service.v2.repository_index import describe_index
from service.v2.schemas import EmptyAnswer, IndexLine

router = APIRouter(tags=["v2"])

_CHANGE_ERRORS = v2_errors(400, 403, 404, 408, 413, 500, 501, 503)


@router.post(
    "/v2/repository/index",
    responses=v2_errors(400, 408, 413, 500, 501, 503),
    openapi_extra=DOCUMENT_OPERATION,
    response_model_exclude_none=True,
)
async def show_index(request: Request) -> list[IndexLine]:
    """List every version of every model, including those that are not served, unless `{"ready": true}` is sent."""
    document = await read_document(request)
    only_ready = bool(member(document, "ready", bool, ""))
    services = services_of(request)
    lines = await services.loading_threads.run(services.repository.index)
    return describe_index(lines, only_ready=only_ready)


@router.post("/v2/repository/models/{name}/load", responses=_CHANGE_ERRORS, openapi_extra=DOCUMENT_OPERATION)
async def load(request: Request, name: str) -> EmptyAnswer:
    """Load or reload a model; the old versions are served until the new ones are ready."""
    services = services_of(request)
    repository = services.repository
    override = parse_load_parameters(name, await _parameters(request))
    await services.loading_threads.run(lambda: repository.load(name, override, services.progress.check))
    return EmptyAnswer()


@router.post(
    "/v2/repository/models/{name}/unload", responses=_CHANGE_ERRORS, openapi_extra=DOCUMENT_OPERATION
)
async def unload(request: Request, name: str) -> EmptyAnswer:
    """Stop serving a model; requests that are in its queue already are still answered."""
    services = services_of(request)
    repository = services.repository
    member(
        await _parameters(request), "unload_dependents", bool, "parameters."
    )  # no model depends on another
    await services.loading_threads.run(lambda: repository.unload(name))
    return EmptyAnswer()


async def _parameters(request: Request) -> Document:
    parameters: Document = member(await read_document(request), "parameters", dict, "") or {}
    return parameters
