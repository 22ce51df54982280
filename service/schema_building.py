"""pydantic's models, where building their validators at once would only cost time."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict


@contextmanager
def built_when_used() -> Iterator[None]:
    """Import modules whose pydantic models are built when they are first used, each in a fraction of a millisecond.

    FastAPI has models for all of OpenAPI, and the server has schemas for all of its answers. Most are of use to
    readers of the API's description alone; to build them all takes a tenth of a server's start.
    """
    usual = BaseModel.model_config
    BaseModel.model_config = ConfigDict(**usual, defer_build=True)
    try:
        yield
    finally:
        BaseModel.model_config = usual
