"""Tasks: what the outputs of a model mean.

    open_task(model)                                     at load: does `model.toml` fit the graph?
    Task.predict(outputs, images, parameters)            at each request: predictions, or None for a raw model
    Task.remark(predictions)                             what to warn the client of, or None
    Task.draw(drawing, predictions)                      draws them on the picture

Each task is a class in a file of its own; `registry.BUILT_IN` is the list of them, to which packages add others by
entry points, and code by `register_task`. `model.toml`, the checks at load, the options of requests, responses and the
API's description all read the class.
"""

from service.config.task_keys import find_task, task_names
from service.images.preparation import check_image_inputs
from service.tasks.raw import Raw
from service.tasks.registry import BUILT_IN, ENTRY_POINTS, TASKS, TaskError, register_task
from service.tasks.task import Prediction, Task, TaskModel, TaskParameters

__all__ = [
    "ENTRY_POINTS",
    "TASKS",
    "Prediction",
    "Task",
    "TaskError",
    "TaskModel",
    "TaskParameters",
    "described_tasks",
    "open_task",
    "register_task",
    "task_class",
    "task_names",
]

register_task(Raw)


def open_task(model: TaskModel) -> Task:
    """Return the task of a model, after checking that the model's configuration fits its graph.

    Raises:
        ModelConfigError: names the key and what the graph has.
    """
    if model.config.image is not None:
        check_image_inputs(model.config.image, model.inputs)
    return task_class(model.config.task)(model)


def task_class(name: str) -> type[Task]:
    """Return a task by its name, which a configuration has been checked to name."""
    find_task(name)
    return TASKS[name]


def described_tasks() -> dict[str, type[Task]]:
    """Return the tasks that come along and those that models use, by name."""
    for name in BUILT_IN:
        find_task(name)
    return dict(sorted(TASKS.items()))
