"""The configuration that a client may send when it has a model loaded: the keys of Triton's that exist here as well."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from service.config.model_config import BatchingConfig, ModelConfig, ModelConfigError
from service.config.validation import expected, first_mismatch, mismatch, number_from_text
from service.config.version_policy import VersionPolicy
from service.config.wording import problem_of
from service.errors import ServiceError, shown

MAX_BATCH_SIZE = 4096
MAX_DELAY_US = 60_000_000

_from_text = BeforeValidator(number_from_text)
_BatchSize = Annotated[
    int, Field(ge=0, le=MAX_BATCH_SIZE), _from_text, expected(f"a whole number from 0 to {MAX_BATCH_SIZE}")
]
_PreferredSize = Annotated[
    int, Field(ge=1, le=MAX_BATCH_SIZE), _from_text, expected(f"a whole number from 1 to {MAX_BATCH_SIZE}")
]
_Delay = Annotated[
    int, Field(ge=0, le=MAX_DELAY_US), _from_text, expected(f"a whole number from 0 to {MAX_DELAY_US}")
]


class _Table(BaseModel):
    """A JSON object with no other keys than the fields of its class."""

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        known = f"the known keys {', '.join(cls.model_fields)}" if cls.model_fields else "no keys"
        if not isinstance(values, dict):
            raise mismatch(f"is {shown(values)}", f"an object with {known}")
        unknown = [shown(key) for key in values if key not in cls.model_fields]
        if unknown:
            raise mismatch(f"{', '.join(unknown[:8])} cannot be set when a model is loaded", known)
        return values


class _DynamicBatching(_Table):
    preferred_batch_size: Annotated[list[_PreferredSize] | None, expected("a list of numbers")] = None
    max_queue_delay_microseconds: _Delay | None = None


class _All(_Table):
    pass


class _Latest(_Table):
    num_versions: Annotated[int, Field(ge=1, le=1), _from_text, expected("1")] = 1


def _read_numbers(value: Any) -> Any:
    return [number_from_text(item) for item in value] if isinstance(value, list) else None


class _Specific(_Table):
    versions: Annotated[VersionPolicy, BeforeValidator(_read_numbers), expected("version numbers from 1")] = (
        Field(default=None, validate_default=True)
    )


class _VersionPolicy(_Table):
    all: _All | None = None
    latest: _Latest | None = None
    specific: _Specific | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: Any) -> Any:
        if value is None:
            raise mismatch("is None", "an object")
        return value

    @model_validator(mode="after")
    def _check_count(self) -> Self:
        given = [policy for _, policy in self if policy is not None]
        if len(given) != 1:
            raise mismatch(f"names {len(given)} policies", f"one of {', '.join(type(self).model_fields)}")
        return self


class ConfigOverride(_Table):
    """Values that replace those of `model.toml` until the model is loaded again, under Triton's names.

    What is None, or left out, keeps the value of `model.toml`.

    Attributes:
        name: the model.
        max_batch_size: maximum rows of a run; 0 and 1 both turn batching off.
        dynamic_batching: the other settings of batching.
        version_policy: which versions are served.
    """

    name: Any = None
    max_batch_size: _BatchSize | None = None
    dynamic_batching: _DynamicBatching = _DynamicBatching()
    version_policy: _VersionPolicy | None = None

    @property
    def versions(self) -> VersionPolicy | None:
        """Which versions are served, as `model.toml` words it."""
        if self.version_policy is None:
            return None
        if self.version_policy.specific is not None:
            return self.version_policy.specific.versions
        return "all" if self.version_policy.all is not None else "latest"

    def apply_to(self, config: ModelConfig) -> ModelConfig:
        """Return a copy of a configuration in which these values replace its own.

        Raises:
            ModelConfigError: they contradict the values that are kept.
        """
        changes: dict[str, Any] = {}
        if self.max_batch_size is not None:
            changes["max_batch_size"] = max(1, self.max_batch_size)
        if self.dynamic_batching.preferred_batch_size is not None:
            changes["preferred_batch_sizes"] = self.dynamic_batching.preferred_batch_size
        if self.dynamic_batching.max_queue_delay_microseconds is not None:
            changes["max_queue_delay_ms"] = self.dynamic_batching.max_queue_delay_microseconds / 1e3
        try:
            batching = BatchingConfig.model_validate({**config.batching.model_dump(), **changes})
        except ValidationError as error:
            problem = problem_of(error.errors(include_url=False)[0])
            raise ModelConfigError("configuration", "dynamic_batching", problem) from error
        return config.model_copy(update={"batching": batching})


def parse_load_parameters(name: str, parameters: Mapping[str, Any]) -> ConfigOverride | None:
    """Read the `parameters` of a load request: `config`, JSON as text; None if it is not given.

    Args:
        name: the model, which the configuration may name too.
        parameters: what the client sent.

    Raises:
        ServiceError: 422 `invalid_config`: the configuration is invalid, or there are other parameters, such as files.
    """
    for key in parameters:
        if key.startswith("file:"):
            raise _invalid(key, "files cannot come with a request", "them in the folder of models")
        if key != "config":
            raise _invalid(key, "is unknown", "config")
    if "config" not in parameters:
        return None
    text = parameters["config"]
    if not isinstance(text, str):
        raise _invalid("config", f"is {shown(text)}", "a JSON object, as text")
    try:
        return _validate(name, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise _invalid("config", f"is no JSON: {error}", "a JSON object, as text") from error


def _validate(name: str, values: Any) -> ConfigOverride:
    try:
        override = ConfigOverride.model_validate(values)
    except ValidationError as error:
        found = first_mismatch(error)
        raise _invalid(found.key or "config", found.problem, found.expected) from error
    if override.name != name and "name" in override.model_fields_set:
        raise _invalid("name", f"is {shown(override.name)}", repr(name))
    return override


def _invalid(key: str, problem: str, expected: str) -> ServiceError:
    message = f"configuration, {shown(key)[1:-1]}: {problem}; expected {expected}"
    return ServiceError(422, "invalid_config", message, {"key": key[:80], "expected": expected})
