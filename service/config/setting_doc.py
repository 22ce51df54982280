"""The documentation of one setting."""

from dataclasses import dataclass

from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """The documentation of one setting.

    Attributes:
        name: name in the settings file and in code.
        flag: flag on the command line; empty for secrets, which other users of the machine could read there.
        variable: environment variable.
        default: the default, as shown to people; empty if there is none.
        text: what the setting controls.
        field: the setting's field.
        panel: the group of settings that it is shown in; None for those that matter most.
    """

    name: str
    flag: str
    variable: str
    default: str
    text: str
    field: FieldInfo
    panel: str | None


def shown_default(value: object) -> str:
    """Return a default as the settings file has it, lists with commas."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
