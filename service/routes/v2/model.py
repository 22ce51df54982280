"""The model that a path of the protocol names."""

from fastapi import Request

from service.context import context_of
from service.repository.loaded_model import LoadedModel
from service.services import services_of


def find_model(request: Request, name: str, version: str | None = None) -> LoadedModel:
    """Return a model; its default version if the path names none.

    Raises:
        ServiceError: 404 if there is no such model or version, 503 if it is broken or the models are not loaded yet.
    """
    model = services_of(request).repository.find(name, version)
    context_of(request).model = model.name
    return model
