"""Every setting of the server, in one place: typed, documented, from flags, environment and a TOML file.

What is said by a flag beats `KUIPER_…` in the environment, which beats the file, which beats the default.
`python -m service.settings` prints the table of all settings as markdown.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from engine.plan import MAX_RUN_BYTES
from service.codec import Limits

ENV_PREFIX = "KUIPER_"

_LIMITS = Limits()

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class SettingsError(ValueError):
    """A setting has a value that it cannot have; the message names the setting and says why."""


class Settings(BaseSettings):
    """All settings, checked. Make them with `load_settings`, or by keyword in tests."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    config: Path | None = Field(default=None, description="TOML file of settings, one `name = value` a line")
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    models: Path = Field(
        default=Path("models"), description="folder of models, or the folder of a single model"
    )
    skip_broken: bool = Field(default=False, description="serve the rest when a model cannot be loaded")
    warm_up: bool = Field(default=True, description="run each model once on zeros when it is loaded")
    workers: int = Field(
        default=0, ge=0, le=1024, description="requests that run side by side; 0: one per core"
    )
    threads: int = Field(
        default=0, ge=0, le=1024, description="threads inside one request; 0: cores / workers, at least 1"
    )
    queue_size: int = Field(
        default=64, ge=0, le=100_000, description="requests that may wait for a worker; more are answered 503"
    )
    timeout: float = Field(
        default=30.0, gt=0, le=86_400, description="seconds until a request is given up and answered 504"
    )
    drain_seconds: float = Field(
        default=30.0,
        ge=0,
        le=86_400,
        description="seconds that accepted requests have to finish after SIGTERM",
    )
    trace_rate: int = Field(
        default=100,
        ge=0,
        description="every how many runs of a model one is traced unasked; 0: only where a request asks",
    )
    max_body_bytes: int = Field(
        default=_LIMITS.body_bytes, ge=1, description="most bytes of a request's body"
    )
    max_image_pixels: int = Field(
        default=_LIMITS.image_pixels,
        ge=1,
        description="most pixels of a request's images, counted before they are decoded",
    )
    max_tensor_elements: int = Field(
        default=_LIMITS.tensor_elements, ge=1, description="most elements of an input tensor"
    )
    max_run_bytes: int = Field(
        default=MAX_RUN_BYTES, ge=1, description="most bytes of tensors alive at once in one run of a model"
    )
    log_level: LogLevel = Field(default="info", description="least severity that is logged")
    log_format: LogFormat = Field(default="text", description="lines for people, or one JSON object a line")
    access_log: bool = Field(default=True, description="log one line per request")

    @property
    def worker_count(self) -> int:
        """Worker threads to start."""
        return self.workers or core_count()

    @property
    def thread_count(self) -> int:
        """Threads that one request's arithmetic may use."""
        return self.threads or max(1, core_count() // self.worker_count)

    @property
    def limits(self) -> Limits:
        """How much a request may ask for."""
        return Limits(self.max_body_bytes, self.max_image_pixels, self.max_tensor_elements)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put the file that `config` names below flags and environment."""
        del dotenv_settings, file_secret_settings
        path = init_settings().get("config") or env_settings().get("config")
        if path is None:
            return init_settings, env_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, _read_file(Path(path)))


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """What people are told of a setting.

    Attributes:
        name: name in a file and in code.
        flag: spelling on the command line.
        variable: environment variable.
        default: default as shown to people; empty where there is none.
        text: what it sets.
        field: the setting's field.
    """

    name: str
    flag: str
    variable: str
    default: str
    text: str
    field: FieldInfo


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """Gather the settings from flags (name -> value), environment and file.

    Raises:
        SettingsError: a value does not fit, the file cannot be read or has a key that is no setting.
    """
    try:
        return Settings(**dict(flags or {}))
    except ValidationError as error:
        raise SettingsError("; ".join(_word(fault) for fault in error.errors())) from error


def core_count() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # platforms that cannot tie a process to cores


def describe_settings() -> Iterator[SettingDoc]:
    """Yield what people are told of each setting, in order."""
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else _show(field.default)
        flag = "--" + name.replace("_", "-")
        yield SettingDoc(name, flag, ENV_PREFIX + name.upper(), default, field.description or "", field)


def settings_table() -> str:
    """Return the markdown table of all settings."""
    rows = ["| flag | environment | default | |", "|---|---|---|---|"]
    for doc in describe_settings():
        default = f"`{doc.default}`" if doc.default else ""
        rows.append(f"| `{doc.flag}` | `{doc.variable}` | {default} | {doc.text} |")
    return "\n".join(rows)


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"config: cannot read {path}: {reason}") from error


def _word(fault: Any) -> str:
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return f"{name}: there is no such setting"
    problem = fault["msg"][0].lower() + fault["msg"][1:]
    return f"{name}: {problem}, got {fault['input']!r}"


if __name__ == "__main__":
    print(settings_table())
