"""What a model is for: what its images become, and what its outputs mean.

    check_model(config, inputs, outputs)            at load: does `model.toml` fit the graph?
    predict(config, ports, outputs, top_k)          at each request: predictions, or None for a raw model

A task is a module with `check` and `predict`, listed in `TASKS` under its name in `model.toml`.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine import Port
from engine.dtypes import Array
from service.config.model_config import ModelConfig
from service.images import preparation
from service.tasks import classification, raw
from service.tasks.prediction import Prediction

__all__ = ["TASKS", "Prediction", "Task", "check_model", "predict"]


class Task(Protocol):
    """What a task's module has."""

    def check(self, config: ModelConfig, outputs: Sequence[Port]) -> None:
        """Raise ModelConfigError where the configuration does not fit the graph's outputs."""

    def predict(
        self, config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None = None
    ) -> list[list[Prediction]] | None:
        """Return for each item of the batch its predictions, best first; None where the task makes none."""


TASKS: Mapping[str, Task] = {"classification": classification, "raw": raw}


def check_model(config: ModelConfig, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
    """Check a model's configuration against its graph.

    Raises:
        ModelConfigError: names the key and what the graph has.
    """
    if config.image is not None:
        preparation.check(config.image, inputs)
    TASKS[config.task].check(config, outputs)


def predict(
    config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None = None
) -> list[list[Prediction]] | None:
    """Return for each item of the batch its predictions, best first; None for a model that makes none.

    Raises:
        ServiceError: 422 where the outputs of this very request cannot be read so.
    """
    return TASKS[config.task].predict(config, ports, outputs, top_k)
