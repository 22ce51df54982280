"""The settings in force, with where each comes from; what is secret is left out."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from service.config.setting_origin import SettingOrigin
from service.config.settings import Settings, describe_settings
from service.config.store_url import StoreUrl

ShownValue: TypeAlias = str | int | float | bool | list[str] | None


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting in force.

    Attributes:
        name: its name in the settings file.
        value: its value; None where it has none, and for secrets.
        origin: where the value comes from.
        secret: whether the value is not shown.
        help: what the setting controls.
    """

    name: str
    value: ShownValue
    origin: SettingOrigin
    secret: bool
    help: str


def settings_in_force(settings: Settings) -> Iterator[SettingValue]:
    """Yield all settings, in order of definition."""
    for doc in describe_settings():
        is_secret = not doc.flag
        value = None if is_secret else _shown(getattr(settings, doc.name))
        yield SettingValue(doc.name, value, settings.origin(doc.name), is_secret, doc.text)


def _shown(value: object) -> ShownValue:
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if isinstance(value, Path | StoreUrl):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else None
