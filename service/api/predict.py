"""`POST /v1/models/{name}:predict`: the paths of TensorFlow Serving."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.infer import run_model
from service.description.openapi import error_responses
from service.infer.predict import PredictExchange

_OBJECT = {"application/json": {"schema": {"type": "object"}}}
_OPERATION: dict[str, Any] = {"requestBody": {"required": True, "content": _OBJECT}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": _OBJECT},
    **error_responses(400, 404, 408, 413, 415, 422, 500, 503, 504),
}

router = APIRouter(tags=["inference"])


@router.post(
    "/v1/models/{name}:predict", openapi_extra=_OPERATION, responses=_RESPONSES, response_class=Response
)
async def predict(request: Request, name: str) -> Response:
    """Run a model by TensorFlow Serving's API, on `{"instances": [row, …]}` or `{"inputs": …}`."""
    return await run_model(request, name, None, PredictExchange)


@router.post(
    "/v1/models/{name}/versions/{version}:predict",
    openapi_extra=_OPERATION,
    responses=_RESPONSES,
    response_class=Response,
)
async def predict_version(request: Request, name: str, version: str) -> Response:
    """Run one version of a model by TensorFlow Serving's API."""
    return await run_model(request, name, version, PredictExchange)
