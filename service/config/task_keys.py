"""The keys of `model.toml` that belong to one task each. The tasks, in `service.tasks`, register them here."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError

from service.config.toml_table import TomlTable


@dataclass(frozen=True, slots=True)
class TaskKeys:
    """The keys of `model.toml` that belong to one task.

    Attributes:
        table: the keys of the table that has the task's name; None for a task without one.
        takes_labels: the task names classes, so that `labels` may be given.
        labels_are_characters: a label is a character, which may be a space.
    """

    table: type[TomlTable] | None = None
    takes_labels: bool = False
    labels_are_characters: bool = False


TASK_KEYS: dict[str, TaskKeys] = {}
"""The keys of each task that is imported, by the task's name."""


TASK_FINDERS: list[tuple[Callable[[], Collection[str]], Callable[[str], None]]] = []
"""The places where tasks are found, in order: what returns the names of those that are there, and what imports a task,
which registers it. The latter does nothing where a task is not there; ValueError: it is there, and cannot be used."""
_finding = RLock()


def find_task(name: str) -> None:
    """Import a task unless that has been done, or there is none of this name.

    Raises:
        ValueError: it cannot be used.
    """
    if name in TASK_KEYS:
        return
    with _finding:  # models are loaded by several threads
        for _, find in TASK_FINDERS:
            if name not in TASK_KEYS:
                find(name)


def reads_characters(task: Any) -> bool:
    """Return whether the labels of a task are characters; false where there is no such task, or it cannot be used."""
    if not isinstance(task, str):
        return False
    with suppress(ValueError):  # the check of the whole configuration says why
        find_task(task)
    return TASK_KEYS.get(task, TaskKeys()).labels_are_characters


def find_all_tasks() -> None:
    """Import all tasks.

    Raises:
        ValueError: one cannot be used.
    """
    for name in task_names():
        find_task(name)


def task_names() -> list[str]:
    """Return the names of all tasks, imported or not."""
    return sorted(set(TASK_KEYS).union(*(names() for names, _ in TASK_FINDERS)))


def task_tables() -> dict[str, type[TomlTable]]:
    """Return the tables of all tasks that have one, by name."""
    return {name: keys.table for name, keys in sorted(TASK_KEYS.items()) if keys.table is not None}


def check_task(value: Any) -> str:
    """Return the name of a task.

    Raises:
        PydanticKnownError: there is no such task.
    """
    if isinstance(value, str) and value in TASK_KEYS:
        return value
    *others, last = [repr(name) for name in task_names()] or ["a task"]
    expected = f"{', '.join(others)} or {last}" if others else last
    raise PydanticKnownError("literal_error", {"expected": expected})


def read_task_tables(values: dict[str, Any]) -> tuple[dict[str, TomlTable], list[InitErrorDetails]]:
    """Validate the tables of tasks in a whole `model.toml`, whatever its task.

    Raises:
        ValueError: a task that it names cannot be used.

    Returns:
        The tables that are valid, by name, and what is wrong with the others.
    """
    tables: dict[str, TomlTable] = {}
    errors: list[InitErrorDetails] = []
    for name in (values.get("task"), *values):
        if isinstance(name, str):
            find_task(name)
    for name, table in task_tables().items():
        if name in values:
            try:
                tables[name] = table.model_validate(values[name])
            except ValidationError as error:
                errors += details_of(error, name)
    return tables, errors


def details_of(error: ValidationError, *location: str) -> list[InitErrorDetails]:
    """Return the details of an error, for an error about a larger value that holds this one at `location`."""
    return [
        InitErrorDetails(
            # whoever raised it, pydantic or a validator: type and text stay as they are
            type=PydanticCustomError(item["type"], item["msg"]),
            loc=(*location, *item["loc"]),
            input=item["input"],
        )
        for item in error.errors(include_url=False)
    ]
