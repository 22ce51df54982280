"""The trace extension: which runs are traced unasked, for `GET /traces`; read and changed while the server runs."""

from dataclasses import dataclass
from typing import Any

from service.errors import ServiceError
from service.scheduling.trace_setting import TraceMode, TraceSetting
from service.v2.document import Document, shown
from service.v2.schemas import TraceSettingView

_FIXED = {"trace_file": "", "log_frequency": "0", "trace_mode": "triton"}
"""What Triton can change and this server cannot: traces are kept in memory, where `GET /traces` shows them."""
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class _Number:
    name: str
    least: int


_RATE, _COUNT = _Number("trace_rate", 0), _Number("trace_count", -1)


def show_trace_setting(setting: TraceSetting) -> TraceSettingView:
    """Return the setting in force."""
    return TraceSettingView(
        trace_level=[setting.level.value],
        trace_rate=str(setting.rate),
        trace_count=str(setting.count),
        **_FIXED,
    )


def change_trace_setting(setting: TraceSetting, start: TraceSetting, values: Document) -> TraceSettingView:
    """Change a setting: all that is given, or nothing where one of the values cannot be had.

    Args:
        setting: what to change.
        start: where null goes back to: a setting whose own values stand for those that were never changed.
        values: name -> value; numbers may be strings, as Triton's clients write them.

    Raises:
        ServiceError: 400 `invalid_setting`.
    """
    level, rate, count = setting.own_level, setting.own_rate, setting.own_count
    for name, value in values.items():
        if name == "trace_level":
            level = start.own_level if value is None else _level(value)
        elif name == _RATE.name:
            rate = start.own_rate if value is None else _whole(_RATE, value)
        elif name == _COUNT.name:
            count = start.own_count if value is None else _whole(_COUNT, value)
        elif name not in _FIXED:
            known = ["trace_level", _RATE.name, _COUNT.name]
            raise _invalid(name, "is no trace setting", f"one of {', '.join(known)}")
        elif value is not None and value != _FIXED[name]:
            raise _invalid(name, f"is {shown(value)}", f"{_FIXED[name]!r}: GET /traces shows the traces")
    setting.own_level, setting.own_rate, setting.own_count = level, rate, count
    return show_trace_setting(setting)


def _level(value: Any) -> TraceMode:
    names = value if isinstance(value, list) else [value]
    if len(names) == 1 and names[0] in [mode.value for mode in TraceMode]:
        return TraceMode(names[0])
    raise _invalid("trace_level", f"is {shown(value)}", "OFF or TIMESTAMPS")


def _whole(number: _Number, value: Any) -> int:
    if isinstance(value, str) and len(value) < 12 and value.removeprefix("-").isdecimal():
        value = int(value)
    if type(value) is int and number.least <= value < _MOST:
        return value
    raise _invalid(number.name, f"is {shown(value)}", f"a whole number from {number.least}")


def _invalid(name: str, problem: str, expected: str) -> ServiceError:
    message = f"trace setting {name[:80]} {problem}; expected {expected}"
    return ServiceError(400, "invalid_setting", message, {"setting": name[:80]})
