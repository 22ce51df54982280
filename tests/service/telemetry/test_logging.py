import json
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from service.log_context import FIELDS, log_fields, request_id
from service.telemetry.logging import JsonFormatter, TextFormatter, configure_logging


def record(message: str = "loaded %s", *args: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("service.test", logging.WARNING, __file__, 1, message, args or ("it",), None)
    made.created = 1_700_000_000.25
    setattr(made, FIELDS, fields)
    return made


def failed() -> logging.LogRecord:
    made = record()
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


@pytest.fixture
def current_request() -> Iterator[None]:
    token = request_id.set("r1")
    yield
    request_id.reset(token)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    handlers, level = logger.handlers, logger.level
    yield logger
    logger.handlers = handlers
    logger.setLevel(level)


def test_text_is_one_line() -> None:
    line = TextFormatter().format(record(model="digits", seconds=0.5, nothing=None))
    assert line == "2023-11-14T22:13:20.250Z WARNING loaded it model=digits seconds=0.5"


@pytest.mark.parametrize(
    ("value", "shown"), [("a b", '"a b"'), ("a\nb", '"a\\nb"'), ("", '""'), ("\x1b[31m", '"\\u001b[31m"')]
)
def test_text_cannot_be_forged_by_a_field(value: str, shown: str) -> None:
    assert TextFormatter().format(record(path=value)).endswith(f" path={shown}")


def test_json_is_one_object_a_line() -> None:
    line = JsonFormatter().format(record(model="digits", text="a\nb"))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "service.test",
        "message": "loaded it",
        "model": "digits",
        "text": "a\nb",
    }


@pytest.mark.usefixtures("current_request")
def test_request_id_is_in_every_line() -> None:
    assert " request_id=r1 model=m" in TextFormatter().format(record(model="m"))
    assert json.loads(JsonFormatter().format(record()))["request_id"] == "r1"


def test_fields_of_the_context_are_in_every_line() -> None:
    with log_fields(model="m", version="1"), log_fields(version="2"):
        assert TextFormatter().format(record(seconds=1)).endswith(" model=m version=2 seconds=1")
    assert TextFormatter().format(record()).endswith("loaded it")


def test_traceback_is_kept() -> None:
    assert TextFormatter().format(failed()).splitlines()[-1] == "ValueError: why"
    assert json.loads(JsonFormatter().format(failed()))["exception"].endswith("ValueError: why")


def test_everything_goes_to_standard_error(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "text")
    logging.getLogger("uvicorn.error").info("hello")
    logging.getLogger("other").debug("quiet")
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"\S+ INFO    hello\n", err)


def test_format_and_level_are_settings(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("error", "json")
    logging.getLogger("other").warning("quiet")
    logging.getLogger("other").error("loud")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "loud"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_what_is_logged_is_clipped(formatter: logging.Formatter) -> None:
    line = formatter.format(record("%s", "m" * 1_000_000, reason="r" * 1_000_000))
    assert len(line) < 10_000
    assert line.count("(1,000,000 characters)") == 2
