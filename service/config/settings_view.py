"""The settings in force, with where each comes from; what is secret is left out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, Field

from service.config.setting_sources import SettingOrigin
from service.config.settings import Settings, describe_settings
from service.config.store_url import StoreUrl

ShownValue: TypeAlias = str | bool | int | float | list[str] | None


class SettingView(BaseModel):
    """A setting in force."""

    name: str
    value: ShownValue = Field(description="null where there is none, and for secrets")
    origin: SettingOrigin = Field(
        description="where the value comes from; machine: the default, made to fit the memory there is"
    )
    secret: bool = Field(description="whether the value is not shown")
    help: str = Field(description="what the setting controls")


class SettingList(BaseModel):
    """The settings in force, in the order of their documentation."""

    settings: list[SettingView]


def settings_in_force(settings: Settings) -> Iterator[SettingView]:
    """Yield all settings, in order of definition."""
    for doc in describe_settings():
        is_secret = not doc.flag
        value = None if is_secret else _shown(getattr(settings, doc.name))
        yield SettingView(
            name=doc.name, value=value, origin=settings.origin(doc.name), secret=is_secret, help=doc.text
        )


def _shown(value: object) -> ShownValue:
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if isinstance(value, Path | StoreUrl):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else None
