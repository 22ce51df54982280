"""The OpenAPI description of `POST /infer`; `InferenceEndpoint` in `direct/inference.py` answers it."""

from fastapi import APIRouter, Response

from service.description.openapi import INFER_OPERATION, INFER_RESPONSES

described = APIRouter(tags=["inference"])


@described.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer() -> None:
    """Run a model on the inputs of one request, and show what every layer did."""
