"""The file of settings, and what is wrong with settings."""

import tomllib
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A setting has an invalid value; the message names the setting and says what is wrong."""


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return the values of a TOML file of settings by name.

    Raises:
        SettingsError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"config: cannot read {path}: {reason}") from error
