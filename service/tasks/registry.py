"""Which tasks there are: those that come along, those of installed packages, and those that code registers.

A task is imported when a `model.toml` names it, so that a server does not wait for the others when it starts.
"""

from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract

from service.config.model_config import ModelConfig
from service.config.task_keys import TASK_FINDERS, TASK_KEYS
from service.tasks.task import Task

ENTRY_POINTS = "kuiper.tasks"
"""The group of entry points by which a package offers its tasks: the name of a task, and where its class is."""
BUILT_IN = {
    "classification": "service.tasks.classification:Classification",
    "detection": "service.tasks.detection:Detection",
    "embedding": "service.tasks.embedding:VectorEmbedding",
    "ocr": "service.tasks.ocr:LineReading",
    "instance-segmentation": "service.tasks.instance_segmentation:InstanceSegmentation",
    "keypoints": "service.tasks.keypoints:Keypoints",
    "pipeline": "service.tasks.pipeline:Pipeline",
    "raw": "service.tasks.raw:Raw",
    "segmentation": "service.tasks.segmentation:SemanticSegmentation",
    "text-detection": "service.tasks.text_detection:TextDetection",
    "text-classification": "service.tasks.text_classification:TextClassification",
    "text-embedding": "service.tasks.text_embedding:TextEmbedding",
}
"""The tasks that come along, each with the module and the class that it is."""

TASKS: dict[str, type[Task]] = {}
"""The tasks that are imported, by name."""


class TaskError(ValueError):
    """A package's task cannot be used; the message says why."""


def register_task(added: type[Task]) -> type[Task]:
    """Add a task; `model.toml` may name it from now on. To be used as a decorator of the task's class.

    Raises:
        ValueError: its name is that of another task, or of a key of `model.toml`.
    """
    if added.name in TASKS or added.name in ModelConfig.model_fields:
        raise ValueError(f"{added.name!r} is the name of a task or of a key of model.toml already")
    TASKS[added.name] = added
    TASK_KEYS[added.name] = added.keys
    return added


def check_class(found: object, place: str) -> type[Task]:
    """Return a class that is a task, which has all that a task needs.

    Args:
        found: the class.
        place: where it was found, for messages.

    Raises:
        TaskError: it is none.
    """
    if not isinstance(found, type) or not issubclass(found, Task):
        raise TaskError(f"{place} is {found!r}; expected a class that derives from service.tasks.Task")
    if isabstract(found) or not isinstance(getattr(found, "name", None), str):
        raise TaskError(f"{place}: {found.__name__} lacks a name or predict; expected both")
    return found


def _find_built_in(name: str) -> None:
    """Import a task that comes along."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        register_task(getattr(import_module(module), attribute))


def _packaged_names() -> set[str]:
    """Return the names of the tasks that installed packages offer as entry points of the group `kuiper.tasks`."""
    return set(entry_points(group=ENTRY_POINTS).names)


def _find_packaged(name: str) -> None:
    """Import a task that an installed package offers.

    Raises:
        TaskError: it cannot be imported, is no task, or two packages offer it.
    """
    offered = tuple(entry_points(group=ENTRY_POINTS, name=name))
    if not offered:
        return
    packages = [entry.dist.name if entry.dist is not None else entry.value for entry in offered]
    if len(offered) > 1:
        raise TaskError(f"several packages offer the task {name!r}: {', '.join(packages)}; expected one")
    place = f"task {name!r} of the package {packages[0]}"
    try:
        found = check_class(offered[0].load(), place)
    except (ImportError, AttributeError) as error:
        raise TaskError(f"{place} cannot be imported: {error}") from error
    if found.name != name:
        raise TaskError(f"{place} calls itself {found.name!r}; expected the name of its entry point")
    if name not in TASKS:  # it may have registered itself
        register_task(found)


TASK_FINDERS[:] = [(BUILT_IN.keys, _find_built_in), (_packaged_names, _find_packaged)]
