"""What goes wrong in a command for a reason that its user can mend, and the exit code for it."""

import os
import re

from engine import KuiperError, ModelFilesError
from service.config.model_config import ModelConfigError
from service.config.setting_file import SettingsError
from service.errors import ServiceError
from service.repository.repository import RepositoryError

BAD, USAGE_ERROR = 1, 2
"""Exit codes: what was asked for cannot be done; it was asked for wrongly."""

_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # a drive has one letter


class CommandError(Exception):
    """A command cannot do what it was asked for; the message says what, where, and what was expected."""


class CommandUsageError(CommandError):
    """The arguments of a command do not fit each other."""


def error_text(error: Exception) -> str:
    """Return what is wrong, in a sentence; of a file, its name and what the system says of it."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        reason = error.strerror[:1].lower() + error.strerror[1:]
        return f"{os.fsdecode(error.filename)}: {reason}{url_hint(os.fsdecode(error.filename))}"
    return str(error)


def url_hint(name: str) -> str:
    """Return "; URLs are not fetched …" where a name is a URL, of which a path has lost a slash; else nothing."""
    return "; URLs are not fetched, download it first" if _URL.match(name) else ""


def exit_code_of(error: Exception) -> int | None:
    """Return the exit code for an error; None where it is a mistake of this program, which needs its traceback."""
    if isinstance(error, CommandUsageError | SettingsError):
        return USAGE_ERROR
    expected = (
        CommandError,
        KuiperError,
        ModelFilesError,
        ModelConfigError,
        RepositoryError,
        ServiceError,
        OSError,
    )
    return BAD if isinstance(error, expected) else None
