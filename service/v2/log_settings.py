"""The logging extension: the lowest severity that is logged, read and changed while the server runs.

The severity is a threshold: everything from it upwards is logged.
"""

import logging
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from service.config.validation import expected
from service.errors import shown
from service.v2.document import Document
from service.v2.schemas import LogSettingView
from service.v2.settings_document import invalid_setting, parse_settings

_FLAGS = ("log_info", "log_warning", "log_error")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
_FIXED = "the value in force, which flags set when the server starts"

_Flag = Annotated[StrictBool, expected("true or false")]


class LogSettings(BaseModel):
    """All log settings, with the changes that a client asks for.

    Attributes:
        log_file: fixed: the log goes to standard error.
        log_info: whether `info` is logged.
        log_warning: whether `warning` is logged.
        log_error: whether `error` is logged.
        log_verbose_level: above 0, `debug` is logged.
        log_format: fixed.
    """

    model_config = ConfigDict(extra="forbid")

    log_file: Annotated[Literal[""], expected(_FIXED)]
    log_info: _Flag
    log_warning: _Flag
    log_error: _Flag
    log_verbose_level: Annotated[StrictInt, Field(ge=0), expected("a whole number from 0")]
    log_format: Annotated[Literal["default"], expected(_FIXED)]


def show_log_settings() -> LogSettingView:
    """Return what is logged now."""
    level = logging.getLogger().level
    return LogSettingView(
        log_file="",
        log_info=level <= logging.INFO,
        log_warning=level <= logging.WARNING,
        log_error=level <= logging.ERROR,
        log_verbose_level=1 if level <= logging.DEBUG else 0,
        log_format="default",
    )


def change_log_settings(values: Document) -> LogSettingView:
    """Change what is logged: everything that is given, or nothing if any value is invalid.

    Raises:
        ServiceError: 400 `invalid_setting`.
    """
    wanted = parse_settings("log setting", LogSettings, {**show_log_settings().model_dump(), **values})
    logging.getLogger().setLevel(_threshold(wanted))
    return show_log_settings()


def _threshold(settings: LogSettings) -> int:
    """Return the lowest level that is logged.

    Raises:
        ServiceError: 400 `invalid_setting`: a severity is logged, but not a higher one.
    """
    flags = (settings.log_verbose_level > 0, settings.log_info, settings.log_warning, settings.log_error)
    if list(flags) != sorted(flags):
        given = ", ".join(shown(getattr(settings, name)) for name in (*_FLAGS, "log_verbose_level"))
        raise invalid_setting(
            "log setting",
            f"{', '.join(_FLAGS)} and log_verbose_level",
            f"would be {given}",
            "that a severity is logged wherever a lower one is",
        )
    return next((level for level, flag in zip(_LEVELS, flags, strict=True) if flag), logging.CRITICAL)
