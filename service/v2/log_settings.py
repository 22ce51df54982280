"""The logging extension: the least severity that is logged, read and changed while the server runs.

It is a threshold: what logs a severity logs all that are graver.
"""

import logging

from service.errors import ServiceError
from service.v2.document import Document, shown
from service.v2.schemas import LogSettingView

_FIXED = {"log_file": "", "log_format": "default"}
"""What cannot be changed while the server runs, and what it is."""
_FLAGS = ("log_info", "log_warning", "log_error")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def show_log_settings() -> LogSettingView:
    """Return what is logged now."""
    level = logging.getLogger().level
    return LogSettingView(
        log_file=_FIXED["log_file"],
        log_info=level <= logging.INFO,
        log_warning=level <= logging.WARNING,
        log_error=level <= logging.ERROR,
        log_verbose_level=1 if level <= logging.DEBUG else 0,
        log_format=_FIXED["log_format"],
    )


def change_log_settings(values: Document) -> LogSettingView:
    """Change what is logged: all of it, or nothing where one of the values cannot be had.

    Raises:
        ServiceError: 400 `invalid_setting`.
    """
    wanted = show_log_settings().model_dump()
    for name, value in values.items():
        if name not in wanted:
            raise _invalid(name, "is no log setting", f"one of {', '.join(wanted)}")
        if name in _FIXED and value != _FIXED[name]:
            raise _invalid(name, f"is {shown(value)}", "no other than is set; flags set it at start")
        if name in _FLAGS and type(value) is not bool:
            raise _invalid(name, f"is {shown(value)}", "true or false")
        if name == "log_verbose_level" and (type(value) is not int or value < 0):
            raise _invalid(name, f"is {shown(value)}", "a whole number from 0")
        wanted[name] = value
    logging.getLogger().setLevel(_threshold(wanted))
    return show_log_settings()


def _threshold(wanted: Document) -> int:
    """Return the level that stands for a set of flags."""
    flags = [wanted["log_verbose_level"] > 0, *(wanted[name] for name in _FLAGS)]
    if flags != sorted(flags):
        raise _invalid(
            f"{', '.join(_FLAGS)} and log_verbose_level",
            f"would be {', '.join(shown(wanted[name]) for name in (*_FLAGS, 'log_verbose_level'))}",
            "with each severity all graver ones",
        )
    return next((level for level, flag in zip(_LEVELS, flags, strict=True) if flag), logging.CRITICAL)


def _invalid(name: str, problem: str, expected: str) -> ServiceError:
    message = f"log setting {name[:80]} {problem}; expected {expected}"
    return ServiceError(400, "invalid_setting", message, {"setting": name[:80]})
