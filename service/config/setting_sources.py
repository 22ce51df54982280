"""Where settings are read from: flags, `KUIPER_…` variables in the environment and a TOML file, in this order."""

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from service.config.setting_file import read_settings_file

ENV_PREFIX = "KUIPER_"
SettingOrigin = Literal["default", "flag", "environment", "file", "machine"]
"""machine: the default is more than what the machine has room for."""


class SourcedSettings(BaseSettings):
    """Settings that know where their values come from; the fields are those of the class that derives from this."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    _origins: dict[str, SettingOrigin] = PrivateAttr(default_factory=dict)

    def origin(self, name: str) -> SettingOrigin:
        """Return where the value of a setting comes from."""
        is_default = getattr(self, name) == type(self).model_fields[name].default
        return self._origins.get(name, "default" if is_default else "machine")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Give the file that `config` names a lower precedence than flags and environment."""
        del dotenv_settings, file_secret_settings
        variables = variables_of(env_settings)
        path = init_settings().get("config") or variables.get("config")
        environment = InitSettingsSource(settings_cls, variables)
        if path is None:
            return init_settings, environment
        return init_settings, environment, InitSettingsSource(settings_cls, read_settings_file(Path(path)))


def variables_of(source: PydanticBaseSettingsSource) -> dict[str, Any]:
    """Return what the environment sets, by name, without the links that Kubernetes puts there for services."""
    return {name: value for name, value in source().items() if not is_service_link(name, value)}


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


def is_service_link(name: str, value: object) -> bool:
    """Return whether Kubernetes set a variable: it sets `KUIPER_PORT` for a service that is called kuiper."""
    return name == "port" and isinstance(value, str) and value.startswith(("tcp://", "udp://", "sctp://"))
