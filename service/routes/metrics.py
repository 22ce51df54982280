"""The OpenAPI description of `GET /metrics`; `service/direct/metrics.py` answers it."""

from fastapi import APIRouter, Response

from service.description.openapi import error_responses
from service.direct.metrics import show_metrics

_CONTENT = {kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")}

router = APIRouter(tags=["monitoring"])
router.add_api_route(
    "/metrics",
    show_metrics,
    response_class=Response,
    responses={200: {"content": _CONTENT}, **error_responses(500)},
)
