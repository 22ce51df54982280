"""The interface of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from engine import Array, Port
from service.config.model_config import ModelConfig
from service.config.task_keys import TaskKeys


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction for one item of a batch. Each task derives a class of its own, whose fields answers show by name.

    Fields hold strings, numbers, and tuples of these; numbers may be NaN or infinite.
    """


class Task(ABC):
    """A task. One instance serves all models, in several threads at once.

    Attributes:
        name: what `task` in `model.toml` calls it.
        keys: what else `model.toml` may say for it.
        view: a prediction as answers show it, for the API's description; None for a task that makes none.
    """

    name: ClassVar[str]
    keys: ClassVar[TaskKeys] = TaskKeys()
    view: ClassVar[type[BaseModel] | None] = None

    @abstractmethod
    def check(self, config: ModelConfig, outputs: Sequence[Port]) -> None:
        """Check, when a model is loaded, that its configuration fits its graph's outputs.

        Raises:
            ModelConfigError: it does not.
        """

    @abstractmethod
    def predict(
        self, config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None
    ) -> Sequence[Sequence[Prediction]] | None:
        """Return for each item of the batch its predictions, best first; None where the task makes none.

        Args:
            config: the model's configuration.
            ports: the graph's outputs.
            outputs: their arrays.
            top_k: how many the request wants; None for as many as are configured.

        Raises:
            ServiceError: 422 where the outputs of this very request cannot be read so.
        """

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Return what clients are to be told about predictions, as a sentence; None where there is nothing."""
        del predictions
        return None
