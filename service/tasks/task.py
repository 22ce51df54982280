"""The interface of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from engine import Array, Port, RuntimeOperator
from service.config.model_config import ModelConfig
from service.config.task_keys import TaskKeys
from service.images.geometry import ImageGeometry

if TYPE_CHECKING:
    from service.images.drawing import Drawing


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction for one item of a batch. Each task derives a class of its own, whose fields responses show by name.

    Fields hold strings, numbers, None, arrays, and tuples and dicts of these; numbers may be NaN or infinite. The API's
    description has the fields as well, with the `description` that a pydantic `Field` gives them.
    """

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)


class TaskParameters(BaseModel):
    """What a request may set for a task; a task that takes parameters derives a class of its own.

    Each field has a default of None, which stands for what `model.toml` says, and a description for people.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class TaskModel:
    """A model, as its task sees it when it is loaded.

    Attributes:
        config: its `model.toml`.
        inputs: the graph's inputs.
        outputs: the graph's outputs.
        operators: the graph's operators, in file order; their attributes and links are those of the file.
    """

    config: ModelConfig
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    operators: Sequence[RuntimeOperator] = ()


class Task(ABC):
    """A task: what the outputs of a model mean. There is one instance for each loaded model, which several threads use.

    Args:
        model: the model. A task that derives from this class checks here that the configuration fits the graph, and
            raises a ModelConfigError that names the key where it does not.

    Attributes:
        name: what `task` in `model.toml` calls it.
        keys: what else `model.toml` may say for it.
        prediction: the class of its predictions; None for a task that makes none.
        parameters: what requests may set for it.
        returns_outputs: whether responses hold the elements of the outputs where the request does not say.
        draws: whether `draw` draws.
    """

    name: ClassVar[str]
    keys: ClassVar[TaskKeys] = TaskKeys()
    prediction: ClassVar[type[Prediction] | None] = None
    parameters: ClassVar[type[TaskParameters]] = TaskParameters
    returns_outputs: bool = True
    draws: bool = False

    def __init__(self, model: TaskModel) -> None:
        self.model = model

    @abstractmethod
    def predict(
        self, outputs: Sequence[Array], images: Sequence[ImageGeometry], parameters: Mapping[str, Any]
    ) -> Sequence[Sequence[Prediction]] | None:
        """Return for each item of the batch its predictions, best first; None where the task makes none.

        Args:
            outputs: the arrays of the graph's outputs.
            images: for each item of the batch, where its picture lies in the input; empty where the request sent
                tensors.
            parameters: those of `parameters` that the request sets, by name, each of its field's type.

        Raises:
            ServiceError: 422 where the outputs of this very request cannot be read so.
        """

    @property
    def all_scores(self) -> Mapping[str, Any] | None:
        """Parameters with which `predict` leaves no score out; None for a task whose predictions have none."""
        return None

    def remark(self, predictions: Sequence[Sequence[Prediction]]) -> str | None:
        """Return the warning about predictions for the client, a sentence; None where there is none."""
        del predictions
        return None

    def draw(self, drawing: "Drawing", predictions: Sequence[Prediction]) -> None:
        """Draw the predictions for a picture on it, where the task `draws`.

        Args:
            drawing: the picture; its methods take coordinates of the original picture.
            predictions: what `predict` returned for it.
        """
        del drawing, predictions
