"""The response of `GET /settings`."""

from pydantic import BaseModel, Field

from service.config.setting_origin import SettingOrigin


class SettingView(BaseModel):
    """A setting in force."""

    name: str
    value: str | bool | int | float | list[str] | None = Field(
        description="null where there is none, and for secrets"
    )
    origin: SettingOrigin = Field(
        description="where the value comes from; machine: the default, made to fit the memory there is"
    )
    secret: bool = Field(description="whether the value is not shown")
    help: str = Field(description="what the setting controls")


class SettingList(BaseModel):
    """The settings in force, in the order of their documentation."""

    settings: list[SettingView]
