"""The options of a request: `trace`, `capture`, `render` and `outputs`, and the parameters of the model's task."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from engine import TraceLevel
from service.config.wording import problem_of
from service.errors import ServiceError, did_you_mean, shown
from service.images.url import URL_ADVICE, is_url
from service.tasks.task import TaskParameters

TRACE_LEVELS = {"off": TraceLevel.OFF, "on": TraceLevel.ON, "stats": TraceLevel.STATISTICS}
MAX_TOP_K = 1_000_000
OPTIONS_SCHEMA: Mapping[str, Any] = {
    "trace": {"type": "string", "enum": list(TRACE_LEVELS), "default": "on"},
    "capture": {"type": "string", "description": "names of operands or operators, commas between"},
    "top_k": {"type": "integer", "minimum": 1},
    "render": {"type": "boolean", "default": False},
    "outputs": {"type": "boolean"},
}
"""The options as OpenAPI describes them."""
NAMES = tuple(OPTIONS_SCHEMA)
_BOOLEANS: Mapping[Any, bool] = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one request; None for those that the request does not set.

    Attributes:
        trace: how much of the run to record.
        capture: names of intermediate operands to return.
        render: whether the response is the picture with the predictions drawn on it.
        outputs: whether the response holds the elements of the outputs.
        task: values of the task's parameters by name, those that the request sets.
    """

    trace: TraceLevel | None = None
    capture: tuple[str, ...] | None = None
    render: bool | None = None
    outputs: bool | None = None
    task: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_observed(self) -> bool:
        """Whether the run keeps operands or computes statistics, which makes it slower."""
        return bool(self.capture) or (self.trace or TraceLevel.OFF) >= TraceLevel.STATISTICS

    def overridden_by(self, other: "Options") -> "Options":
        """Return these options, overridden by those that `other` sets; the query overrides the body."""
        return Options(
            self.trace if other.trace is None else other.trace,
            self.capture if other.capture is None else other.capture,
            self.render if other.render is None else other.render,
            self.outputs if other.outputs is None else other.outputs,
            {**self.task, **other.task} if other.task else self.task,
        )


def parse_options(
    values: Mapping[str, Any],
    parameters: type[TaskParameters] = TaskParameters,
    others: Collection[str] = (),
) -> Options:
    """Read options from a query, from form fields or from `parameters` of a JSON body.

    `trace` is off, on, stats, or a JSON boolean; `capture` is a list, or names with commas between; `top_k` is a
    whole number from 1, which tasks that know nothing of it ignore; `render` and `outputs` are booleans.

    Args:
        values: the options by name.
        parameters: those that the model's task has besides.
        others: names that are read elsewhere, which may be meant by an unknown one.

    Raises:
        ServiceError: 422 `invalid_parameter` for an unknown name or a value that is none of these.
    """
    if not values:
        return Options()
    own = parameters.model_fields
    check_names(values, option_names(parameters), others)
    given = {name: value for name, value in values.items() if name in own}
    if "top_k" in values:
        top_k = _top_k(values["top_k"])
        given |= {"top_k": top_k} if "top_k" in own else {}
    return Options(
        _trace(values["trace"]) if "trace" in values else None,
        _capture(values["capture"]) if "capture" in values else None,
        _boolean("render", values["render"]) if "render" in values else None,
        _boolean("outputs", values["outputs"]) if "outputs" in values else None,
        _task_values(given, parameters) if given else {},
    )


def check_names(values: Mapping[str, Any], known: Collection[str], others: Collection[str] = ()) -> None:
    """Check that parameters have known names.

    Raises:
        ServiceError: 422 `invalid_parameter`; names the nearest of the known ones and the others.
    """
    for name, value in values.items():
        if name not in known:
            hint = f"; {URL_ADVICE}" if is_url(value) else did_you_mean(name, [*known, *others])
            raise _invalid(name, "is unknown", f"one of {', '.join(known)}{hint}")


def option_names(parameters: type[TaskParameters]) -> list[str]:
    """Return the names of all options of a request to a model whose task has some parameters."""
    return [*NAMES, *(name for name in parameters.model_fields if name not in NAMES)]


def _task_values(given: Mapping[str, Any], parameters: type[TaskParameters]) -> dict[str, Any]:
    """Validate the parameters of a task; texts, as queries and forms have them, are read as what they stand for."""
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    others = {name: value for name, value in given.items() if name not in texts}
    try:
        read = [parameters.model_validate_strings(texts), parameters.model_validate(others, strict=True)]
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name, problem = str(fault["loc"][0]), problem_of(fault).removeprefix("Input should be ")
        raise _invalid(name, f"is {shown(given[name])}", problem) from error
    values = {name: getattr(model, name) for model in read for name in model.model_fields_set}
    return {
        name: value for name, value in values.items() if value is not None
    }  # null is what `model.toml` says


def _boolean(name: str, value: Any) -> bool:
    read = value if isinstance(value, bool) else _BOOLEANS.get(value) if isinstance(value, str) else None
    if read is None:
        raise _invalid(name, f"is {shown(value)}", "true or false")
    return read


def _trace(value: Any) -> TraceLevel:
    if isinstance(value, bool):
        return TraceLevel.ON if value else TraceLevel.OFF
    level = TRACE_LEVELS.get(value) if isinstance(value, str) else None
    if level is None:
        raise _invalid("trace", f"is {shown(value)}", "off, on or stats")
    return level


def _capture(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _invalid("capture", f"is {shown(value)}", "operand names, as a list or with commas between")
    return tuple(dict.fromkeys(stripped for name in names if (stripped := name.strip())))


def _top_k(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TOP_K:
        raise _invalid("top_k", f"is {shown(value)}", "a whole number from 1")
    return value


def _invalid(name: str, problem: str, expected: str) -> ServiceError:
    message = f"parameter {shown(name)} {problem}; expected {expected}"
    return ServiceError(422, "invalid_parameter", message, {"parameter": name, "expected": expected})
