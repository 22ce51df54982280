"""Tasks beside a model: `task.py` in its folder, which is run only where the server is started with `--allow-code`."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock

from service.config.model_config import ModelConfig, ModelConfigError
from service.config.task_keys import TASK_KEYS, task_names
from service.tasks.registry import TASKS, TaskError, check_class
from service.tasks.task import Task

FILE_NAME = "task.py"

_lock = Lock()
_owners: dict[str, Path] = {}
"""The model's folder that each task comes from which a `task.py` defines, by the task's name."""


def load_local_task(folder: Path, is_allowed: bool) -> None:
    """Register the task that `task.py` in a model's folder defines, if there is one; once more after a change.

    Args:
        folder: the model's folder.
        is_allowed: whether such code may be run.

    Raises:
        ModelConfigError: code is not allowed, or the file is not a module that defines one task.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return
    if not is_allowed:
        problem = "holds code, which this server does not run"
        raise ModelConfigError(path, None, problem, "no such file, or a server started with --allow-code")
    with _lock:
        found = _read(path)
        owner = _owners.get(found.name)
        is_taken = owner is None and found.name in {*task_names(), *ModelConfig.model_fields}
        if is_taken or (owner is not None and owner != folder):
            problem = f"its task is called {found.name!r}, as another one is"
            raise ModelConfigError(path, "name", problem, "a name of its own")
        _owners[found.name] = folder
        TASKS[found.name] = found
        TASK_KEYS[found.name] = found.keys


def _read(path: Path) -> type[Task]:
    """Run a file, and return the task that it defines."""
    name = f"kuiper_task_{path.parent.name}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelConfigError(path, None, "cannot be read as a module", "Python")
    module = module_from_spec(spec)
    sys.modules[name] = module  # classes look for their module when their annotations are read
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a model's own code may raise anything
        raise ModelConfigError(path, None, f"failed: {type(error).__name__}: {error}") from error
    defined = [found for found in vars(module).values() if _is_task_of(found, name)]
    if len(defined) != 1:
        problem = f"defines {len(defined)} tasks"
        raise ModelConfigError(path, None, problem, "one class derived from service.tasks.Task")
    try:
        return check_class(defined[0], "its task")
    except TaskError as error:
        raise ModelConfigError(path, None, str(error)) from error


def _is_task_of(found: object, module: str) -> bool:
    return isinstance(found, type) and issubclass(found, Task) and found.__module__ == module
