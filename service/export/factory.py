"""Modules that a class or a function makes, named as `package.module:function` or `file.py:Class`."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from service.export.errors import ExportError
from service.export.extra import need
from service.export.torch_graph import said_by
from service.export.torch_source import ModuleSource

_EXPECTED = (
    "a torch.nn.Module, a class of them or a function that returns one, neither with required arguments, as "
    "package.module:function or file.py:Class"
)


def open_factory(text: str) -> ModuleSource:
    """Return the module that a class or a function makes; the current folder is looked into as well.

    Args:
        text: where it is: `package.module:function`, `file.py:Class`, or the module itself in place of either.

    Raises:
        ExportError: there is no such name, or it makes no module.
    """
    torch = need("torch")
    place, _, name = text.rpartition(":")
    with _importing_from(Path(place).parent if place.endswith(".py") else Path()):
        found = _found(place, name, text)
        module = found if isinstance(found, torch.nn.Module) else _made(found, text)
    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"{text} returned a {type(module).__name__}; expected {_EXPECTED}")
    return ModuleSource(f"{text}, PyTorch", module.to("cpu").eval().float())


def _found(place: str, name: str, text: str) -> Any:
    try:
        module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (ImportError, ValueError, OSError) as error:
        raise ExportError(f"{text}: {said_by(error)}; expected {_EXPECTED}") from error
    except Exception as error:  # whatever the file's own code raises
        raise ExportError(f"{place} raised {type(error).__name__}: {said_by(error)}") from error
    if not hasattr(module, name):
        raise ExportError(f"{place} has no {name!r}{_candidates(module)}; expected {_EXPECTED}")
    return getattr(module, name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"file_of_{path.stem}"  # another than that of any module which it imports itself
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # classes look for their own module there
    spec.loader.exec_module(module)
    return module


def _candidates(module: ModuleType) -> str:
    """Return which classes of a module might have been meant."""
    base = need("torch").nn.Module
    own = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module.__name__
    ]
    return f" (it has {', '.join(own)})" if own else ""


def _made(maker: Any, text: str) -> Any:
    if not callable(maker):
        raise ExportError(f"{text} is a {type(maker).__name__}; expected {_EXPECTED}")
    required = _required_arguments(maker)
    if required:
        raise ExportError(
            f"{text} needs {', '.join(required)}: write a function without required arguments that calls it, and "
            "give that in its place"
        )
    try:
        return maker()
    except Exception as error:  # whatever its own code raises
        raise ExportError(f"{text} raised {type(error).__name__}: {said_by(error)}") from error


def _required_arguments(maker: Any) -> list[str]:
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # some C functions have no signature
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Import from a folder as well, as Python itself does from that of a script."""
    added = str(folder.resolve())
    sys.path.insert(0, added)
    try:
        yield
    finally:
        sys.path.remove(added)
