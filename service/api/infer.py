"""`POST /infer`."""

from fastapi import APIRouter, Request, Response

from service.api.inference import run_model
from service.description.openapi import INFER_OPERATION, INFER_RESPONSES
from service.infer.exchange import InferExchange

router = APIRouter(tags=["inference"])


@router.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer(request: Request) -> Response:
    """Run a model on the inputs of one request, and show what every layer did."""
    query = request.query_params
    return await run_model(request, query.get("model"), query.get("version"), InferExchange)
