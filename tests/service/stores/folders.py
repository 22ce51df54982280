"""Models whose files tests change, and a poller of them that tests drive."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine import Array
from service.config.settings import Settings
from service.repository.loaded_model import LoadedModel
from service.repository.model_source import ModelSource
from service.repository.poller import Poller
from service.repository.repository import ModelRepository, load_repository
from tests.engine.models import write_model

SCALE = """
    pnnx.Input     in    0 1 0 #0=(1,2)f32
    pnnx.Attribute scale 0 1 1 @data=(1,2)f32 #1=(1,2)f32
    pnnx.Expression mul  2 1 0 1 2 expr=mul(@0,@1) #2=(1,2)f32
    pnnx.Output    out   1 0 2
"""
"""Returns its input times a number that is in its weights."""


def write_scale(folder: Path, scale: float) -> Path:
    """Write a model that multiplies by a number; returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder, SCALE, {"scale.data": np.full((1, 2), scale, np.float32)})
    return folder


def scale_of(model: LoadedModel) -> float:
    """Return the number that a model multiplies by, as it does."""
    found: Array = model.graph.forward([np.ones((1, 2), np.float32)])[0]
    return float(found[0, 0])


class PolledFolder:
    """The models of a folder, loaded as a server loads them, and polled when a test says so."""

    def __init__(self, root: Path, step: Callable[[str], None] = lambda _: None, **settings: Any) -> None:
        self.settings = Settings(models=root, model_control="poll", backend="numpy", **settings)
        self.source = ModelSource(root, is_polled=True)
        self.retired: list[LoadedModel] = []
        self.repository: ModelRepository = load_repository(
            self.settings, self.retired.append, source=self.source
        )
        self.poller = Poller(self.source, self.repository, self.settings.poll_seconds, step)

    def polls(self, times: int) -> None:
        for _ in range(times):
            self.poller.poll()

    def scales(self) -> dict[str, float]:
        """Return what each served version multiplies by, by model and version."""
        return {f"{model.name}/{model.version}": scale_of(model) for model in self.repository}

    @property
    def changes(self) -> dict[str, int]:
        return {outcome: count for outcome, count in self.poller.changes.items() if count}
