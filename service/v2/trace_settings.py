"""The trace extension: which runs are traced without a request asking for it; read and changed at run time."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from service.config.validation import expected, number_from_text
from service.scheduling.queue import TraceSetting
from service.v2.document import Document
from service.v2.schemas import TraceSettingView
from service.v2.settings_document import parse_settings

_MAX = 1 << 31


def _only(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


_from_text = BeforeValidator(number_from_text)


class TraceSettingChange(BaseModel):
    """The values that a client sends to change a trace setting; null restores the value at the start.

    Attributes:
        trace_level: whether runs are traced, alone or as the only item of a list.
        trace_rate: N where every Nth run is traced; 0 for none.
        trace_count: how many runs are still to be traced; -1 for no limit.
        trace_file: fixed, as are the next two: traces are kept in memory, where `GET /traces` shows them.
        log_frequency: fixed.
        trace_mode: fixed.
    """

    model_config = ConfigDict(extra="forbid")

    trace_level: Annotated[
        Literal["OFF", "TIMESTAMPS"] | None, BeforeValidator(_only), expected("OFF or TIMESTAMPS")
    ] = None
    trace_rate: Annotated[
        StrictInt | None, Field(ge=0, lt=_MAX), _from_text, expected("a whole number from 0")
    ] = None
    trace_count: Annotated[
        StrictInt | None, Field(ge=-1, lt=_MAX), _from_text, expected("a whole number from -1")
    ] = None
    trace_file: Annotated[Literal[""] | None, expected("'': GET /traces shows the traces")] = ""
    log_frequency: Annotated[Literal["0"] | None, expected("'0': GET /traces shows the traces")] = "0"
    trace_mode: Annotated[Literal["triton"] | None, expected("'triton': GET /traces shows the traces")] = (
        "triton"
    )


def show_trace_setting(setting: TraceSetting) -> TraceSettingView:
    """Return the setting in force."""
    return TraceSettingView(
        trace_level=[setting.values["trace_level"]],
        trace_rate=str(setting.values["trace_rate"]),
        trace_count=str(setting.values["trace_count"]),
        trace_file="",
        log_frequency="0",
        trace_mode="triton",
    )


def change_trace_setting(setting: TraceSetting, values: Document) -> TraceSettingView:
    """Change a setting: everything that is given, or nothing if any value is invalid.

    Args:
        setting: what to change.
        values: name -> value; numbers may be text, as Triton's clients write them. Null restores that of the server,
            or at its start.

    Raises:
        ServiceError: 400 `invalid_setting`.
    """
    change = parse_settings("trace setting", TraceSettingChange, values)
    for name in change.model_fields_set & setting.values.keys():
        value = getattr(change, name)
        if value is None:
            setting.values.maps[0].pop(name, None)
        else:
            setting.values[name] = value
    return show_trace_setting(setting)
