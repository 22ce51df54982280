"""The OpenAPI description of `GET /livez` and `GET /readyz`; `service/direct/health.py` answers them."""

from fastapi import APIRouter

from service.description.openapi import error_responses
from service.direct.health import show_alive, show_ready
from service.schemas import Health

router = APIRouter(tags=["health"])
router.add_api_route("/livez", show_alive, response_model=Health, responses=error_responses(500))
router.add_api_route("/readyz", show_ready, response_model=Health, responses=error_responses(500, 503))
