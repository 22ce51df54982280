"""The keys of `model.toml` that belong to one task each. The tasks, in `service.tasks`, register them here."""

from dataclasses import dataclass
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
    """

    table: type[TomlTable] | None = None
    takes_labels: bool = False


TASK_KEYS: dict[str, TaskKeys] = {}
"""The keys of each task, by the task's name."""


def task_tables() -> dict[str, type[TomlTable]]:
    """Return the tables of all tasks that have one, by name."""
    return {name: keys.table for name, keys in TASK_KEYS.items() if keys.table is not None}


def check_task(value: Any) -> str:
    """Return the name of a task.

    Raises:
        PydanticKnownError: there is no such task.
    """
    if isinstance(value, str) and value in TASK_KEYS:
        return value
    *others, last = [repr(name) for name in sorted(TASK_KEYS)] or ["a task"]
    expected = f"{', '.join(others)} or {last}" if others else last
    raise PydanticKnownError("literal_error", {"expected": expected})


def read_task_tables(values: dict[str, Any]) -> tuple[dict[str, TomlTable], list[InitErrorDetails]]:
    """Validate the tables of tasks in a whole `model.toml`, whatever its task.

    Returns:
        The tables that are valid, by name, and what is wrong with the others.
    """
    tables: dict[str, TomlTable] = {}
    errors: list[InitErrorDetails] = []
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
