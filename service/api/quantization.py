"""`GET /models/{name}/quantization`: what int8 does to a model, layer by layer."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.repository.quantization_view import QuantizationView
from service.services import find_model, services_of

router = APIRouter(tags=["models"])


@router.get("/models/{name}/quantization", responses=error_responses(404, 409, 422, 500, 503))
def show_quantization(
    request: Request,
    name: str,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
) -> QuantizationView:
    """Show the quantization report of a model: the int8 layers, with error and time of each.

    The file is read again when it has changed. What is served changes when the model is loaded again.
    """
    services = services_of(request)
    model = find_model(request, name, version)
    return QuantizationView.of(model, services.quantizations.find(model))
