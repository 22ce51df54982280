"""Structured logs on standard error, as text or as one JSON object per line, with the id of the request."""

import json
import logging
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

from service.config.choices import LogFormat, LogLevel
from service.errors import clipped
from service.log_context import FIELDS, context_fields, request_id
from service.telemetry.status_line import StatusLineHandler


def configure_logging(level: LogLevel, log_format: LogFormat, process: int | None = None) -> None:
    """Send all logs of the process to standard error in the given format.

    Args:
        level: lowest severity that is logged.
        log_format: text or JSON.
        process: number of the process, which is in each line; None where there is one.
    """
    handler = StatusLineHandler(sys.stderr, has_status=log_format == "text" and sys.stderr.isatty())
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    if process is not None:
        handler.addFilter(partial(_number, process))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def _number(process: int, record: logging.LogRecord) -> bool:
    """Add the number of the process to a record."""
    fields = getattr(record, FIELDS, {})
    setattr(record, FIELDS, {**fields, "process": process})
    return True


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, request_id, the record's fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        entry = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clipped(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """One line per record: `time LEVEL message key=value …`. A traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of text."""
        fields = "".join(f" {key}={_plain(value)}" for key, value in _fields(record).items())
        line = f"{_timestamp(record)} {record.levelname:<7} {clipped(record.getMessage())}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    current = request_id.get()
    fields: dict[str, Any] = {} if current is None else {"request_id": current}
    given = {**context_fields.get(), **getattr(record, FIELDS, {})}
    return fields | {
        key: clipped(value) if isinstance(value, str) else value
        for key, value in given.items()
        if value is not None
    }


def _plain(value: object) -> str:
    """Return a value as text without line breaks and, unless it is quoted, without spaces."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else json.dumps(text)
