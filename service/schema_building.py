"""pydantic's models, where building their validators at once would only cost time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict


@contextmanager
def built_when_used() -> Iterator[None]:
    """Import modules whose pydantic models are built when they are first used, each in a fraction of a millisecond.

    FastAPI has models for all of OpenAPI, and the server has schemas for all of its answers. Most are of use to
    readers of the API's description alone; to build them all takes a tenth of a server's start.
    """
    usual, rebuild = BaseModel.model_config, BaseModel.__dict__["model_rebuild"]

    def rebuild_where_used(model: type[BaseModel], /, **options: Any) -> bool | None:
        # a module calls it with none, after its last model; the first use of a model, on whatever thread, with some
        return rebuild.__get__(None, model)(**options) if options else None

    BaseModel.model_config = ConfigDict(**usual, defer_build=True)
    BaseModel.model_rebuild = classmethod(rebuild_where_used)  # type: ignore[assignment]  # for so long
    try:
        yield
    finally:
        BaseModel.model_config = usual
        BaseModel.model_rebuild = rebuild  # type: ignore[method-assign]  # the one that it was
