"""Packages that only an export needs; they are imported when they are used."""

import importlib
from typing import Any

from service.export.errors import ExportError
from service.version import install_command

INSTALL = install_command("export")


def need(name: str, install: str = INSTALL) -> Any:
    """Return a package.

    Args:
        name: its name.
        install: the command that installs it.

    Raises:
        ExportError: it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ExportError(f"{name} cannot be imported ({error}); an export needs it: {install}") from error
