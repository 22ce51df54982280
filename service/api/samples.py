"""`GET /models/{name}/samples`: inputs that come with a model."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.errors import ServiceError
from service.http.conditional import response_unless_known
from service.repository.sample_files import sample_files
from service.repository.schemas import SampleList, SampleView
from service.services import find_model
from service.tagged_document import tagged

_HEADERS = {
    # whatever is in the file, a browser that opens it runs and loads nothing
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}

Version = Annotated[str | None, Query(description=VERSION_DESCRIPTION)]

router = APIRouter(tags=["models"])


@router.get("/models/{name}/samples", responses=error_responses(404, 422, 500, 503))
def list_samples(request: Request, name: str, version: Version = None) -> SampleList:
    """List the sample inputs of a model, from its folder `samples`, and the files that describe them."""
    model = find_model(request, name, version)
    return SampleList(
        samples=[
            SampleView(name=sample.name, media_type=sample.media_type, bytes=sample.size)
            for sample in sample_files(model)
        ]
    )


@router.get(
    "/models/{name}/samples/{file}",
    response_class=Response,
    responses={
        200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
        **error_responses(404, 422, 500, 503),
    },
)
def send_sample(request: Request, name: str, file: str, version: Version = None) -> Response:
    """Return a sample file of a model, with its own media type."""
    model = find_model(request, name, version)
    sample = next((sample for sample in sample_files(model) if sample.name == file), None)
    if sample is None:
        message = (
            f"model {model.name!r} has no sample {file[:80]!r}; GET /models/{model.name}/samples lists them"
        )
        raise ServiceError(404, "sample_not_found", message, {"model": model.name, "sample": file[:128]})
    return response_unless_known(request, tagged(sample.path.read_bytes()), sample.media_type, _HEADERS)
