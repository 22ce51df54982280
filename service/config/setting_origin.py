"""Where the values of settings come from."""

from collections.abc import Container, Iterable
from typing import Literal

SettingOrigin = Literal["default", "flag", "environment", "file", "machine"]
"""machine: the default is more than what the machine has room for."""


def origins_of(
    names: Iterable[str], flags: Container[str], variables: Container[str]
) -> dict[str, SettingOrigin]:
    """Return where each setting that was set comes from, by name.

    Args:
        names: the settings that were set.
        flags: names of those that flags set, which come first.
        variables: names of those that the environment sets; what neither does, the file does.
    """
    return {
        name: "flag" if name in flags else "environment" if name in variables else "file" for name in names
    }
