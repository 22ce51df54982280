"""What a client may change of a model's configuration when it has it loaded: the keys of Triton's that are ours too."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from service.config.model_config import BatchingConfig, ModelConfig, ModelConfigError
from service.config.version_policy import VersionPolicy, check_policy
from service.errors import ServiceError

MAX_BATCH_SIZE = 4096
MAX_DELAY_US = 60_000_000

_KEYS = ("name", "max_batch_size", "dynamic_batching", "version_policy")
_BATCHING_KEYS = ("preferred_batch_size", "max_queue_delay_microseconds")
_POLICIES = ("all", "latest", "specific")


@dataclass(frozen=True, slots=True)
class ConfigOverride:
    """What stands in for `model.toml` until the model is loaded again; None where `model.toml` holds.

    Attributes:
        max_batch_size: most rows of a run; 0 and 1 both stand for no batches.
        preferred_batch_sizes: rows that are not waited beyond.
        max_queue_delay_us: microseconds that a request waits for others.
        versions: which versions are served.
    """

    max_batch_size: int | None = None
    preferred_batch_sizes: tuple[int, ...] | None = None
    max_queue_delay_us: int | None = None
    versions: VersionPolicy | None = None

    def apply_to(self, config: ModelConfig) -> ModelConfig:
        """Return a configuration with these values in the place of its own.

        Raises:
            ModelConfigError: they do not go together with those that stay.
        """
        changes: dict[str, Any] = {}
        if self.max_batch_size is not None:
            changes["max_batch_size"] = max(1, self.max_batch_size)
        if self.preferred_batch_sizes is not None:
            changes["preferred_batch_sizes"] = self.preferred_batch_sizes
        if self.max_queue_delay_us is not None:
            changes["max_queue_delay_ms"] = self.max_queue_delay_us / 1e3
        try:
            batching = BatchingConfig.model_validate({**config.batching.model_dump(), **changes})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise ModelConfigError("configuration", "dynamic_batching", problem) from error
        return config.model_copy(update={"batching": batching})


def parse_load_parameters(name: str, parameters: Mapping[str, Any]) -> ConfigOverride | None:
    """Read the `parameters` of a request that loads a model: `config`, JSON as text. None where there is none.

    Args:
        name: the model, which the configuration may name too.
        parameters: what the client sent.

    Raises:
        ServiceError: 422 `invalid_config` for anything else, files among it.
    """
    for key in parameters:
        if key.startswith("file:"):
            raise _invalid(key, "files are not taken from requests", "them in the folder of models")
        if key != "config":
            raise _invalid(key, "is not known", "config")
    if "config" not in parameters:
        return None
    text = parameters["config"]
    if not isinstance(text, str):
        raise _invalid("config", f"is {_shown(text)}", "a JSON object, as text")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid("config", f"is no JSON: {error}", "a JSON object, as text") from error
    return parse_override(name, values)


def parse_override(name: str, values: Any) -> ConfigOverride:
    """Read a model configuration as Triton's clients send it.

    Args:
        name: the model.
        values: the configuration, decoded.

    Raises:
        ServiceError: 422 `invalid_config`: a key that is not known here, or a value that it cannot have.
    """
    values = _table("config", values, _KEYS)
    if values.get("name", name) != name:
        raise _invalid("name", f"is {_shown(values['name'])}", repr(name))
    batching = _table("dynamic_batching", values.get("dynamic_batching", {}), _BATCHING_KEYS)
    size, delay = values.get("max_batch_size"), batching.get("max_queue_delay_microseconds")
    preferred = batching.get("preferred_batch_size")
    policy = values.get("version_policy")
    return ConfigOverride(
        max_batch_size=None if size is None else _number("max_batch_size", size, 0, MAX_BATCH_SIZE),
        preferred_batch_sizes=None if preferred is None else _sizes(preferred),
        max_queue_delay_us=None
        if delay is None
        else _number("dynamic_batching.max_queue_delay_microseconds", delay, 0, MAX_DELAY_US),
        versions=None if policy is None else _policy(policy),
    )


def _sizes(values: Any) -> tuple[int, ...]:
    place = "dynamic_batching.preferred_batch_size"
    if not isinstance(values, list):
        raise _invalid(place, f"is {_shown(values)}", "a list of numbers")
    return tuple(_number(place, value, 1, MAX_BATCH_SIZE) for value in values)


def _policy(value: Any) -> VersionPolicy:
    table = _table("version_policy", value, _POLICIES)
    if len(table) != 1:
        raise _invalid("version_policy", f"names {len(table)} policies", f"one of {', '.join(_POLICIES)}")
    ((policy, options),) = table.items()
    place = f"version_policy.{policy}"
    if policy == "all":
        _table(place, options, ())
        return "all"
    if policy == "latest":
        _number(
            f"{place}.num_versions", _table(place, options, ("num_versions",)).get("num_versions", 1), 1, 1
        )
        return "latest"
    versions = _table(place, options, ("versions",)).get("versions")
    try:
        policy_of_list: VersionPolicy = check_policy(
            list(map(_whole, versions)) if isinstance(versions, list) else 0
        )
    except ValueError as error:
        raise _invalid(f"{place}.versions", f"is {_shown(versions)}", "version numbers from 1") from error
    return policy_of_list


def _table(place: str, value: Any, keys: Sequence[str]) -> dict[str, Any]:
    known = f"the known keys {', '.join(keys)}" if keys else "no keys"
    if not isinstance(value, dict):
        raise _invalid(place, f"is {_shown(value)}", f"an object with {known}")
    unknown = [key for key in value if key not in keys]
    if unknown:
        listing = ", ".join(_shown(key) for key in unknown[:8])
        raise _invalid(place, f"{listing} cannot be set when a model is loaded", known)
    return value


def _number(place: str, value: Any, least: int, most: int) -> int:
    number = _whole(value)
    if number is None or not least <= number <= most:
        expected = str(least) if least == most else f"a whole number from {least} to {most}"
        raise _invalid(place, f"is {_shown(value)}", expected)
    return number


def _whole(value: Any) -> int | None:
    """Return a whole number, which protobuf's JSON spells as text where it has 64 bits; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _invalid(place: str, problem: str, expected: str) -> ServiceError:
    message = f"configuration, {_shown(place)[1:-1]}: {problem}; expected {expected}"
    return ServiceError(422, "invalid_config", message, {"key": place[:80], "expected": expected})
