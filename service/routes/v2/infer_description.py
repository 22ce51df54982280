"""The OpenAPI description of `POST /v2/models/M/infer`; `InferenceEndpoint` in `direct/inference.py` answers it."""

from fastapi import APIRouter, Response

from service.v2.openapi import INFER_OPERATION, INFER_RESPONSES

described = APIRouter(tags=["v2"])


@described.post(
    "/v2/models/{name}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer(name: str) -> None:
    """Run a model on the inputs of one request, JSON or binary tensor data."""


@described.post(
    "/v2/models/{name}/versions/{version}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer_version(name: str, version: str) -> None:
    """Run one version of a model on the inputs of one request, JSON or binary tensor data."""
