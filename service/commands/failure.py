"""What goes wrong in a command for a reason that its user can mend, and the exit code for it."""

from engine import KuiperError, ModelFilesError
from service.config.model_config import ModelConfigError
from service.config.setting_file import SettingsError
from service.errors import ServiceError
from service.repository.repository import RepositoryError

BAD, USAGE_ERROR = 1, 2
"""Exit codes: what was asked for cannot be done; it was asked for wrongly."""


class CommandError(Exception):
    """A command cannot do what it was asked for; the message says what, where, and what was expected."""


class CommandUsageError(CommandError):
    """The arguments of a command do not fit each other."""


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
