"""Every setting of the server, in one place: typed, documented, read from flags, the environment and a TOML file.

A flag takes precedence over a `KUIPER_…` variable in the environment, the variable over the file, and the file over
the default.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from service.config.choices import BackendName, LogFormat, LogLevel, ModelControl, OtelMode, PrecisionName
from service.config.limits import Limits
from service.config.machine import this_machine
from service.config.origins import Hosts, Origins
from service.config.setting_file import SettingsError
from service.config.setting_sources import ENV_PREFIX, SourcedSettings, origins_of, variables_of
from service.config.store_url import ModelLocation, without_secrets
from service.config.wording import nearest_of, problem_of

COMMON: Final = (
    "models",
    "host",
    "port",
    "grpc_port",
    "config",
    "processes",
    "workers",
    "threads",
    "precision",
    "max_batch_size",
    "timeout",
    "api_keys_file",
)
"""The settings that matter most, which come first in help and documentation."""

PANELS: Final = {
    "Models": (
        "model_name",
        "skip_broken",
        "model_control",
        "poll_seconds",
        "store_cache_bytes",
        "allow_code",
        "warm_up",
        "backend",
    ),
    "Scheduling": (
        "queue_size",
        "drain_delay_seconds",
        "drain_seconds",
    ),
    "Limits": (
        "max_body_bytes",
        "max_buffered_bytes",
        "max_run_bytes",
    ),
    "Access and TLS": (
        "api_keys",
        "admin_keys",
        "admin_keys_file",
        "open_metrics",
        "cors_origins",
        "allowed_hosts",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_keyfile_password",
        "ssl_ca_certs",
    ),
    "Logs and traces": (
        "log_level",
        "log_format",
        "trace_rate",
        "otel",
    ),
}
"""The other settings, in groups."""


class Settings(SourcedSettings):
    """All settings, validated. `load_settings` reads them; tests pass them by keyword."""

    config: Path | None = Field(
        default=None, description="TOML file of settings, one `name = value` per line"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on (0 = a free one)")
    grpc_port: int | None = Field(
        default=None, ge=0, le=65535, description="port for gRPC (0 = a free one); needs the extra [grpc]"
    )
    models: ModelLocation = Field(
        default=Path("models"),
        description="directory of models, or of a single model; or its place in a store: s3://BUCKET/PREFIX, gs://…, "
        "az://… or hf://ORGANISATION/NAME, which need the extra [cloud]",
    )
    model_name: str | None = Field(
        default=None, description="name of the only model, in place of that of its directory"
    )
    skip_broken: bool = Field(
        default=False, description="start even if a model cannot be loaded, with the others"
    )
    model_control: ModelControl = Field(
        default="none",
        description="loading of models after the start: none, explicit (by clients), or poll (changes found by the "
        "server)",
    )
    poll_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="seconds between two looks for changes of models; a change is loaded once two looks agree on it",
    )
    store_cache_bytes: int = Field(
        default=20 << 30,
        ge=1,
        description="maximum bytes of files of a store that are cached beside those in use, and maximum bytes of a "
        "model",
    )
    allow_code: bool = Field(
        default=False,
        description="execution of `task.py` in the folders of models; only for models that you trust",
    )
    warm_up: bool = Field(
        default=True,
        description="compilation for the expected shapes, and one run, when a model is loaded",
    )
    backend: BackendName = Field(
        default="auto",
        description="what runs the layers: native (compiled kernels), numpy, or auto (native where possible)",
    )
    precision: PrecisionName = Field(
        default="f32",
        description="precision of models whose model.toml names none: f32, bf16, int8, int4 or auto",
    )
    processes: int = Field(
        default=1,
        ge=1,
        le=256,
        description="processes that serve the port; CPUs and memory are divided among them",
    )
    workers: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="requests that run at the same time in each process (0 = one per CPU)",
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="threads of each run (0 = CPUs / workers, at least 1)",
    )
    queue_size: int = Field(
        default=64,
        ge=0,
        le=100_000,
        description="maximum requests that wait for a worker; others get 503",
    )
    timeout: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="seconds until a request gets 504",
    )
    drain_delay_seconds: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        description="seconds after SIGTERM in which `/readyz` is 503 while requests are still accepted, for load "
        "balancers",
    )
    drain_seconds: float = Field(
        default=30.0,
        ge=0,
        le=86_400,
        description="seconds after SIGTERM in which accepted requests may finish",
    )
    max_batch_size: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="maximum rows of a run that serves several requests (1 = no batching)",
    )
    trace_rate: int = Field(
        default=100,
        ge=0,
        description="runs of a model per traced one (100 = every hundredth, 0 = only on request)",
    )
    max_body_bytes: int = Field(
        default=Limits().body_bytes,
        ge=1,
        description="maximum bytes of a request body; a larger value also raises the bounds of responses, images, "
        "tensors and JSON",
    )
    max_buffered_bytes: int = Field(
        default=128 << 20,
        ge=1,
        description="maximum bytes of all request bodies in progress (others get 503), and of all responses that "
        "clients have yet to read (the slowest is cut off)",
    )
    max_run_bytes: int = Field(
        default=1 << 30,
        ge=1,
        description="maximum bytes of tensors that are alive at once during a run",
    )
    log_level: LogLevel = Field(
        default="info", description="lowest severity that is logged; requests are logged as info"
    )
    log_format: LogFormat = Field(
        default="text", description="log format: text (lines for people) or json (one object per line)"
    )
    otel: OtelMode = Field(
        default="off",
        description="OpenTelemetry spans: off, on (of requests), or layers (and of each layer of a traced run); "
        "configured by the standard variables such as `OTEL_EXPORTER_OTLP_ENDPOINT`; needs the extra [otel]",
    )
    api_keys: SecretStr | None = Field(
        default=None,
        description="API keys, separated by commas, of which every request needs one (none = no key needed)",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="file of API keys, one per line, `#` starts a comment; read again when it changes",
    )
    admin_keys: SecretStr | None = Field(
        default=None,
        description="API keys, separated by commas, that also allow loading models and changing trace and log settings",
    )
    admin_keys_file: Path | None = Field(
        default=None, description="file of admin keys, in the form of `api_keys_file`"
    )
    open_metrics: bool = Field(default=False, description="access to /metrics without a key")
    cors_origins: Origins = Field(
        default=(), description="origins whose web pages may call the server, separated by commas (`*` = all)"
    )
    allowed_hosts: Hosts = Field(
        default=(),
        description="hosts that requests may be for besides loopback, separated by commas (`*` = all); by default "
        "all, or none where `host` is a loopback address",
    )
    ssl_certfile: Path | None = Field(
        default=None, description="PEM file of the certificate chain; turns on HTTPS"
    )
    ssl_keyfile: Path | None = Field(
        default=None, description="PEM file of the private key, if `ssl_certfile` does not hold it"
    )
    ssl_keyfile_password: SecretStr | None = Field(default=None, description="password of the private key")
    ssl_ca_certs: Path | None = Field(
        default=None,
        description="PEM file of certificate authorities; every client needs a certificate of one of them",
    )

    _limits: Limits = PrivateAttr(default_factory=Limits)

    @property
    def worker_count(self) -> int:
        """Number of worker threads to start."""
        return self.workers or this_machine().cpus

    @property
    def thread_count(self) -> int:
        """Number of threads that the arithmetic of one request may use."""
        return self.threads or max(1, this_machine().cpus // self.worker_count)

    @property
    def limits(self) -> Limits:
        """Upper bounds on the size of a request; `max_body_bytes` raises all of them, where it is larger."""
        return replace(
            self._limits,
            body_bytes=self.max_body_bytes,
            json_bytes=max(self._limits.json_bytes, self.max_body_bytes // 4),
            image_pixels=max(self._limits.image_pixels, self.max_body_bytes),
            tensor_elements=max(self._limits.tensor_elements, self.max_body_bytes // 4),
            response_bytes=max(self._limits.response_bytes, self.max_body_bytes),
        )

    @property
    def unsent_bytes(self) -> int:
        """Maximum bytes of responses that clients have yet to read: room for the largest one at least."""
        return max(self.max_buffered_bytes, self.limits.response_bytes)

    def with_limits(self, limits: Limits, changes: Mapping[str, Any]) -> Self:
        """Return settings with other values, and with bounds that fit the memory.

        Args:
            limits: the bounds, which `max_body_bytes` may raise.
            changes: the values.
        """
        fitted = self.model_copy(update=changes)
        fitted._limits = limits
        return fitted


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings from flags (name -> value), the environment and the settings file.

    Raises:
        SettingsError: a value is invalid, or the file cannot be read or holds a key that is no setting.
    """
    given = dict(flags or {})
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_word(fault) for fault in error.errors())) from error
    variables = variables_of(EnvSettingsSource(Settings))
    settings._origins = origins_of(settings.model_fields_set, given, variables)
    return settings


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


def describe_settings() -> Iterator[SettingDoc]:
    """Yield the documentation of each setting: those that matter most, and the others in groups."""
    placed = [(None, COMMON), *PANELS.items()]
    for panel, name in [(panel, name) for panel, names in placed for name in names]:
        field = Settings.model_fields[name]
        default = "" if field.default in (None, ()) else _shown(field.default)
        flag = "" if _is_secret(name) else "--" + name.replace("_", "-")
        yield SettingDoc(
            name, flag, ENV_PREFIX + name.upper(), default, field.description or "", field, panel
        )


def _shown(value: object) -> str:
    """Return a default as the settings file has it, lists with commas."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def suggest(name: str) -> str:
    """Return "; did you mean …?" with the setting whose name is closest, or an empty string if none is close."""
    near = get_close_matches(name, Settings.model_fields, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _is_secret(name: str) -> bool:
    field = Settings.model_fields.get(name)
    return field is not None and field.annotation == SecretStr | None


def _word(fault: Any) -> str:
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return f"{name}: unknown setting{suggest(name)}"
    problem = problem_of(fault)
    problem = problem[0].lower() + problem[1:]
    if _is_secret(name):
        return f"{name}: {problem}"
    given = without_secrets(fault["input"]) if isinstance(fault["input"], str) else fault["input"]
    return f"{name}: {problem}, got {given!r}{nearest_of(fault)}"
