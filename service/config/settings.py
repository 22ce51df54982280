"""Every setting of the server, in one place: typed, documented, read from flags, the environment and a TOML file.

A flag takes precedence over a `KUIPER_…` variable in the environment, the variable over the file, and the file over
the default.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource

from service.config.choices import BackendName, ConsoleMode, LogFormat, LogLevel, ModelControl, VerifyMode
from service.config.image_formats import KNOWN_FORMATS, ImageFormats
from service.config.limits import Limits
from service.config.machine import this_machine
from service.config.origins import Hosts, Origins
from service.config.precision_name import PrecisionName
from service.config.setting_doc import SettingDoc, shown_default
from service.config.setting_file import SettingsError
from service.config.setting_origin import origins_of
from service.config.setting_sources import ENV_PREFIX, SourcedSettings, variables_of
from service.config.store_url import ModelLocation, without_secrets
from service.config.wording import problem_of

_LIMITS = Limits()

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
        "store_cache",
        "store_cache_bytes",
        "allow_code",
        "warm_up",
        "backend",
        "verify",
        "max_build_seconds",
    ),
    "Scheduling": (
        "heavy_workers",
        "queue_size",
        "max_queue_delay_ms",
        "drain_delay_seconds",
        "drain_seconds",
    ),
    "Limits": (
        "max_body_bytes",
        "max_buffered_bytes",
        "max_unsent_bytes",
        "max_answer_bytes",
        "max_run_bytes",
        "max_tensor_elements",
        "max_image_pixels",
        "max_decode_seconds",
        "image_formats",
        "send_timeout",
        "max_connections",
        "max_connection_age_seconds",
        "rate_limit",
    ),
    "Access and TLS": (
        "api_keys",
        "admin_keys",
        "admin_keys_file",
        "open_metrics",
        "open_docs",
        "console",
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
        "access_log",
        "trace_rate",
        "recent_traces",
        "otel",
        "otel_layers",
    ),
}
"""The other settings, in groups."""


class Settings(SourcedSettings):
    """All settings, validated. `load_settings` reads them; tests pass them by keyword."""

    config: Path | None = Field(
        default=None, description="TOML file of settings, one `name = value` per line"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on; 0 chooses a free one")
    grpc_port: int | None = Field(
        default=None, ge=0, le=65535, description="port for gRPC, 0: a free one; needs the extra [grpc]"
    )
    models: ModelLocation = Field(
        default=Path("models"),
        description="directory that holds the models, or of a single model; or where they are in a store: "
        "s3://BUCKET/PREFIX, gs://…, az://… or hf://ORGANISATION/NAME, which need the extra [cloud]",
    )
    model_name: str | None = Field(
        default=None, description="name of the only model, in place of that of its directory"
    )
    skip_broken: bool = Field(
        default=False, description="start even if a model cannot be loaded, and serve the others"
    )
    model_control: ModelControl = Field(
        default="none",
        description="explicit: clients may load, reload and unload models; "
        "poll: the server looks for changes itself, and loads what has changed",
    )
    poll_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="seconds between two looks for changes of models; a change is loaded once two looks agree on it",
    )
    store_cache: Path | None = Field(
        default=None,
        description="directory that keeps the files of a store; by default kuiper-store in that of the user's caches",
    )
    store_cache_bytes: int = Field(
        default=20 << 30,
        ge=1,
        description="most bytes of files of a store that are kept beside those in use, and most that a model may have",
    )
    allow_code: bool = Field(
        default=False, description="run `task.py` in the folders of models; only for models that you trust"
    )
    warm_up: bool = Field(
        default=True,
        description="when a model is loaded, compile it for the shapes it is expected to get, and run it once",
    )
    backend: BackendName = Field(
        default="auto",
        description="what runs the layers: native (compiled kernels), numpy, or auto: native where that is possible",
    )
    verify: VerifyMode = Field(
        default="load",
        description="load: compare each compiled program with the numpy layers, and do not use it if they differ; the "
        "very same program is compared once for all processes that share `KUIPER_CACHE`; always: compare it in every "
        "process; off: use it unchecked",
    )
    precision: PrecisionName = Field(
        default="f32", description="precision of models whose model.toml names none: f32, bf16, int8 or auto"
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
        description="requests that run at the same time; 0: one per core, or per CPU of a container's quota",
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="threads that each request runs on; 0: cores, or CPUs of the quota, / workers, at least 1",
    )
    heavy_workers: int = Field(
        default=0, ge=0, le=1024, description="heavy requests at work beside `workers`; 0: workers - 1, min 1"
    )
    queue_size: int = Field(
        default=64,
        ge=0,
        le=100_000,
        description="requests that may wait for a worker; any others are answered 503",
    )
    timeout: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="seconds after which a request is abandoned and answered 504",
    )
    drain_delay_seconds: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        description="seconds after SIGTERM in which `/readyz` answers 503 while all requests are still taken, so that "
        "load balancers turn away first",
    )
    drain_seconds: float = Field(
        default=30.0,
        ge=0,
        le=86_400,
        description="seconds that accepted requests have to finish after SIGTERM",
    )
    max_batch_size: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="largest number of rows in one run that serves several requests; 1: every request runs on its own",
    )
    max_queue_delay_ms: float = Field(
        default=0.0,
        ge=0,
        le=60_000,
        description="milliseconds that a request waits for others to share its run; "
        "0: it is batched only with requests that are waiting already",
    )
    trace_rate: int = Field(
        default=100,
        ge=0,
        description="trace every Nth run of each model, even if no request asks for a trace; 0: trace only on request",
    )
    max_body_bytes: int = Field(
        default=_LIMITS.body_bytes, ge=1, description="most bytes that the body of a request may have"
    )
    max_buffered_bytes: int = Field(
        default=128 << 20,
        ge=1,
        description="most bytes of the bodies of all unanswered requests in total; any others are answered 503",
    )
    max_unsent_bytes: int = Field(
        default=128 << 20,
        ge=1,
        description="most bytes of answers that clients have yet to read; above, the slowest reader is cut off",
    )
    send_timeout: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="seconds after which a client is cut off that reads less than 4 KiB of its answer per second",
    )
    max_connections: int = Field(
        default=0,
        ge=0,
        description="most connections; for one more, the least used is closed; 0: 4096, or what file descriptors allow",
    )
    max_connection_age_seconds: float = Field(
        default=0.0,
        ge=0,
        le=1e9,
        description="seconds, give or take a tenth, after which a connection's next answer is its last; 0: no limit",
    )
    rate_limit: float = Field(
        default=0.0,
        ge=0,
        description="requests per second of each key, or address where none is needed; more are answered 429; 0: any",
    )
    max_image_pixels: int = Field(
        default=_LIMITS.image_pixels,
        ge=1,
        description="most pixels that the images of a request may have in total, checked before they are decoded; what "
        "takes more memory counts more: WebP five times, progressive JPEG and images with transparency twice",
    )
    max_decode_seconds: float = Field(
        default=_LIMITS.decode_seconds,
        gt=0,
        le=86_400,
        description="seconds of the processor that the large images of a request may take; three times that in all",
    )
    image_formats: ImageFormats = Field(
        default=KNOWN_FORMATS,
        description="formats of images that are taken, separated by commas: `png`, `jpeg`, `webp`, `bmp`",
    )
    max_tensor_elements: int = Field(
        default=_LIMITS.tensor_elements, ge=1, description="most elements that an input tensor may have"
    )
    max_answer_bytes: int = Field(
        default=_LIMITS.answer_bytes,
        ge=1,
        description="most bytes of an answer, and of the outputs and captured tensors that it is made of",
    )
    max_run_bytes: int = Field(
        default=1 << 30,
        ge=1,
        description="most bytes of tensors that may be alive at once during a run",
    )
    max_build_seconds: float = Field(
        default=300.0,
        gt=0,
        le=86_400,
        description="seconds that building a model, and planning and compiling it for some shapes, may each take",
    )
    log_level: LogLevel = Field(default="info", description="lowest severity that is logged")
    log_format: LogFormat = Field(
        default="text", description="text: lines for people; json: one JSON object per line"
    )
    access_log: bool = Field(default=True, description="log one line per request")
    recent_traces: int = Field(
        default=100, ge=0, le=100_000, description="number of traced runs kept for /traces; 0: none"
    )
    otel: bool = Field(
        default=False,
        description="send OpenTelemetry spans, configured by the standard variables such as "
        "`OTEL_EXPORTER_OTLP_ENDPOINT`; needs the extra [otel]",
    )
    otel_layers: bool = Field(default=False, description="also send a span for each layer of a traced run")
    api_keys: SecretStr | None = Field(
        default=None,
        description="API keys, separated by commas: every request needs one of them; without keys, none is needed",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="file of API keys, one per line, `#` starts a comment; it is read again when it changes",
    )
    admin_keys: SecretStr | None = Field(
        default=None,
        description="API keys, separated by commas, that also allow loading and unloading models "
        "and changing trace and log settings",
    )
    admin_keys_file: Path | None = Field(
        default=None, description="file of admin keys, in the same form as `api_keys_file`"
    )
    open_metrics: bool = Field(default=False, description="answer /metrics without a key")
    open_docs: bool = Field(default=False, description="answer /docs and /openapi.json without a key")
    console: ConsoleMode = Field(
        default="on", description="whether `/console` and, for browsers, `/` show the console"
    )
    cors_origins: Origins = Field(
        default=(), description="origins whose web pages may call the server, separated by commas; `*`: all"
    )
    allowed_hosts: Hosts = Field(
        default=(),
        description="hosts that requests may be for besides loopback, separated by commas; `*`: all; by default all, "
        "or none where `host` is a loopback address",
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
        description="PEM file of certificate authorities; clients must present a certificate that one of them signed",
    )

    @property
    def worker_count(self) -> int:
        """Number of worker threads to start."""
        return self.workers or this_machine().cpus

    @property
    def heavy_worker_count(self) -> int:
        """Number of worker threads to start for heavy requests."""
        return self.heavy_workers or max(1, self.worker_count - 1)

    @property
    def thread_count(self) -> int:
        """Number of threads that the arithmetic of one request may use."""
        return self.threads or max(1, this_machine().cpus // self.worker_count)

    @property
    def limits(self) -> Limits:
        """How much a request may ask for."""
        return Limits(
            body_bytes=self.max_body_bytes,
            image_pixels=self.max_image_pixels,
            tensor_elements=self.max_tensor_elements,
            answer_bytes=self.max_answer_bytes,
            decode_seconds=self.max_decode_seconds,
            image_formats=self.image_formats,
        )


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


def describe_settings() -> Iterator[SettingDoc]:
    """Yield the documentation of each setting: those that matter most, and the others in groups."""
    placed = [(None, COMMON), *PANELS.items()]
    for panel, name in [(panel, name) for panel, names in placed for name in names]:
        field = Settings.model_fields[name]
        default = "" if field.default in (None, ()) else shown_default(field.default)
        flag = "" if _is_secret(name) else "--" + name.replace("_", "-")
        yield SettingDoc(
            name, flag, ENV_PREFIX + name.upper(), default, field.description or "", field, panel
        )


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
        return f"{name}: there is no such setting{suggest(name)}"
    problem = problem_of(fault)
    problem = problem[0].lower() + problem[1:]
    if _is_secret(name):
        return f"{name}: {problem}"
    given = fault["input"]
    return f"{name}: {problem}, got {(without_secrets(given) if isinstance(given, str) else given)!r}"
