"""`GET /models`: what is served."""

from fastapi import APIRouter, Request

from service.context import context_of
from service.openapi import error_responses
from service.schemas import ModelDetail, ModelList, ModelSummary
from service.services import services_of

router = APIRouter(tags=["models"])


@router.get("/models", responses=error_responses(500, 503))
async def list_models(request: Request) -> ModelList:
    """List all models, broken ones included."""
    repository = services_of(request).repository
    ready = [ModelSummary.of(model) for model in repository]
    broken = [ModelSummary.of_broken(name, reason) for name, reason in repository.broken.items()]
    return ModelList(models=sorted([*ready, *broken], key=lambda model: model.name))


@router.get("/models/{name}", responses=error_responses(404, 422, 500, 503))
async def show_model(request: Request, name: str) -> ModelDetail:
    """Show one model: its inputs, outputs, size, state and labels."""
    repository = services_of(request).repository
    if name in repository.broken:
        return ModelDetail.of_broken(name, repository.broken[name])
    model = repository.find(name)
    context_of(request).model = model.name
    return ModelDetail.of(model)
