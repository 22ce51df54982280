import pytest

from engine import TraceLevel
from service.codec import Options, parse_options
from tests.service.codec.payloads import refused


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ("off", TraceLevel.OFF),
        ("on", TraceLevel.ON),
        ("stats", TraceLevel.STATISTICS),
        (True, TraceLevel.ON),
        (False, TraceLevel.OFF),
    ],
)
def test_trace(given: object, level: TraceLevel) -> None:
    assert parse_options({"trace": given}).trace is level


@pytest.mark.parametrize("given", ["5, 7,5,", ["5", " 7"]])
def test_capture(given: object) -> None:
    assert parse_options({"capture": given}).capture == ("5", "7")


@pytest.mark.parametrize("given", ["3", 3])
def test_top_k(given: object) -> None:
    assert parse_options({"top_k": given}).top_k == 3


def test_nothing_asked() -> None:
    assert parse_options({}) == Options(None, None, None)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("trace", "yes"),
        ("trace", 1),
        ("trace", None),
        ("trace", ["on"]),
        ("capture", 3),
        ("capture", [3]),
        ("capture", None),
        ("top_k", 0),
        ("top_k", "0"),
        ("top_k", "-1"),
        ("top_k", "\u00b2"),
        ("top_k", "1" * 5000),
        ("top_k", 1 << 40),
        ("top_k", True),
        ("top_k", 1.5),
        ("color", "on"),
    ],
)
def test_invalid(name: str, given: object) -> None:
    error = refused(lambda: parse_options({name: given}), 422, "invalid_parameter", name)
    assert error.details["parameter"] == name
    assert len(error.message) < 250


def test_query_wins_over_body() -> None:
    body = Options(TraceLevel.ON, ("5",), None)
    assert body.overridden_by(Options(TraceLevel.OFF, None, 2)) == Options(TraceLevel.OFF, ("5",), 2)
    assert body.overridden_by(Options(None, (), None)).capture == ()
