"""The OpenAPI description of TensorFlow Serving's paths; `InferenceEndpoint` in `direct/inference.py` answers them."""

from typing import Any

from fastapi import APIRouter, Response

from service.description.openapi import error_responses

_OBJECT = {"application/json": {"schema": {"type": "object"}}}
_OPERATION: dict[str, Any] = {"requestBody": {"required": True, "content": _OBJECT}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": _OBJECT},
    **error_responses(400, 404, 408, 413, 415, 422, 500, 503, 504),
}

described = APIRouter(tags=["inference"])


@described.post(
    "/v1/models/{name}:predict", openapi_extra=_OPERATION, responses=_RESPONSES, response_class=Response
)
async def predict(name: str) -> None:
    """Run a model on `{"instances": [row, …]}` or `{"inputs": …}`, as TensorFlow Serving's clients send them."""


@described.post(
    "/v1/models/{name}/versions/{version}:predict",
    openapi_extra=_OPERATION,
    responses=_RESPONSES,
    response_class=Response,
)
async def predict_version(name: str, version: str) -> None:
    """Run one version of a model on `{"instances": [row, …]}` or `{"inputs": …}`."""
