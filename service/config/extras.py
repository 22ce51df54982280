"""Extras of the package, which settings ask for."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.config.setting_file import SettingsError
from service.version import install_command


@contextmanager
def needs_extra(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Name the extra where an import within the block finds none of its packages.

    Args:
        what: the setting that asks for it; begins the message.
        extra: the extra's name.
        packages: what it installs, as it is imported.

    Raises:
        SettingsError: one of the packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        message = f"{what} needs an extra that is not installed: {install_command(extra)}"
        raise SettingsError(message) from error
