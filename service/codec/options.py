"""The options of a request: `trace`, `capture` and `top_k`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from engine import TraceLevel
from service.errors import ServiceError

NAMES = ("trace", "capture", "top_k")
TRACE_LEVELS = {"off": TraceLevel.OFF, "on": TraceLevel.ON, "stats": TraceLevel.STATISTICS}
MAX_TOP_K = 1_000_000
OPTIONS_SCHEMA: Mapping[str, Any] = {
    "trace": {"type": "string", "enum": list(TRACE_LEVELS), "default": "on"},
    "capture": {"type": "string", "description": "operand names, commas between"},
    "top_k": {"type": "integer", "minimum": 1},
}
"""The options as OpenAPI describes them."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one request; None for those that the request does not set.

    Attributes:
        trace: how much of the run to record.
        capture: names of intermediate operands to return.
        top_k: predictions per item.
    """

    trace: TraceLevel | None = None
    capture: tuple[str, ...] | None = None
    top_k: int | None = None

    def overridden_by(self, other: "Options") -> "Options":
        """Return these options, overridden by those that `other` sets; the query overrides the body."""
        chosen = {}
        for field in fields(self):
            theirs = getattr(other, field.name)
            chosen[field.name] = getattr(self, field.name) if theirs is None else theirs
        return Options(**chosen)


def parse_options(values: Mapping[str, Any]) -> Options:
    """Read options from a query, from form fields or from `parameters` of a JSON body.

    `trace` is off, on, stats, or a JSON boolean; `capture` is a list, or names with commas between; `top_k` is a
    whole number from 1.

    Raises:
        ServiceError: 422 `invalid_parameter` for an unknown name or a value that is none of these.
    """
    for name in values:
        if name not in NAMES:
            raise _invalid(name, "is not known", f"one of {', '.join(NAMES)}")
    return Options(
        _trace(values["trace"]) if "trace" in values else None,
        _capture(values["capture"]) if "capture" in values else None,
        _top_k(values["top_k"]) if "top_k" in values else None,
    )


def _trace(value: Any) -> TraceLevel:
    if isinstance(value, bool):
        return TraceLevel.ON if value else TraceLevel.OFF
    level = TRACE_LEVELS.get(value) if isinstance(value, str) else None
    if level is None:
        raise _invalid("trace", f"is {_shown(value)}", "off, on or stats")
    return level


def _capture(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _invalid("capture", f"is {_shown(value)}", "operand names, as a list or with commas between")
    return tuple(dict.fromkeys(stripped for name in names if (stripped := name.strip())))


def _top_k(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TOP_K:
        raise _invalid("top_k", f"is {_shown(value)}", "a whole number from 1")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _invalid(name: str, problem: str, expected: str) -> ServiceError:
    message = f"parameter {_shown(name)} {problem}; expected {expected}"
    return ServiceError(422, "invalid_parameter", message, {"parameter": name, "expected": expected})
