"""Tasks: what the outputs of a model mean.

    check_model(config, inputs, outputs)            at load: does `model.toml` fit the graph?
    predict(config, ports, outputs, top_k)          at each request: predictions, or None for a raw model
    remark(config, predictions)                     what to tell the client about them, or None

Each task is a `Task` in a file of its own; `TASKS` is the one list of them, to which `register_task` adds others.
`model.toml`, the checks at load, answers and the API's description all read it.
"""

from collections.abc import Sequence

from engine import Array, Port
from service.config.model_config import ModelConfig
from service.config.task_keys import TASK_KEYS
from service.images.preparation import check_image_inputs
from service.tasks.classification import Classification
from service.tasks.raw import Raw
from service.tasks.task import Prediction, Task

__all__ = ["TASKS", "Prediction", "Task", "check_model", "predict", "register_task", "remark"]

TASKS: dict[str, Task] = {}
"""The tasks by name."""


def register_task(added: Task) -> Task:
    """Add a task; `model.toml` may name it from now on.

    Raises:
        ValueError: its name is that of another task, or of a key of `model.toml`.
    """
    if added.name in TASKS or added.name in ModelConfig.model_fields:
        raise ValueError(f"{added.name!r} is the name of a task or of a key of model.toml already")
    TASKS[added.name] = added
    TASK_KEYS[added.name] = added.keys
    return added


for _built_in in (Raw(), Classification()):
    register_task(_built_in)


def check_model(config: ModelConfig, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
    """Check a model's configuration against its graph.

    Raises:
        ModelConfigError: names the key and what the graph has.
    """
    if config.image is not None:
        check_image_inputs(config.image, inputs)
    TASKS[config.task].check(config, outputs)


def predict(
    config: ModelConfig, ports: Sequence[Port], outputs: Sequence[Array], top_k: int | None = None
) -> Sequence[Sequence[Prediction]] | None:
    """Return for each item of the batch its predictions, best first; None for a model that makes none.

    Raises:
        ServiceError: 422 where the outputs of this very request cannot be read so.
    """
    return TASKS[config.task].predict(config, ports, outputs, top_k)


def remark(config: ModelConfig, predictions: Sequence[Sequence[Prediction]] | None) -> str | None:
    """Return what clients are to be told about predictions, as a sentence; None where there is nothing."""
    return None if predictions is None else TASKS[config.task].remark(predictions)
