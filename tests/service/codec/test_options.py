from typing import Literal

import pytest
from pydantic import Field

from engine import TraceLevel
from service.codec import Options, parse_options
from service.tasks import TaskParameters
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
    assert parse_options({"top_k": given}, Found).task == {"top_k": 3}
    assert parse_options({"top_k": given}).task == {}


class Found(TaskParameters):
    """Parameters of a task."""

    top_k: int | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    merged: bool | None = None
    form: Literal["rle", "png"] | None = None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"confidence": "0.25", "merged": "true"}, {"confidence": 0.25, "merged": True}),
        ({"confidence": 1, "form": "rle"}, {"confidence": 1.0, "form": "rle"}),
    ],
)
def test_parameters_of_a_task(given: dict[str, object], read: dict[str, object]) -> None:
    assert parse_options(given, Found).task == read


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"confidence": "2"}, "'confidence' is '2'; expected"),
        ({"confidence": "high"}, "'confidence' is 'high'"),
        ({"confidence": True}, "'confidence' is True"),
        ({"confidence": float("nan")}, "'confidence' is nan"),
        ({"form": "gif"}, "'form' is 'gif'; expected 'rle' or 'png'"),
        ({"form": ["rle"]}, "'form' is ['rle']"),
        ({"color": "1"}, "one of trace, capture, top_k, render, outputs, confidence, merged, form"),
    ],
)
def test_parameters_of_a_task_that_are_invalid(given: dict[str, object], text: str) -> None:
    error = refused(lambda: parse_options(given, Found), 422, "invalid_parameter", text)
    assert error.details["parameter"] in given


@pytest.mark.parametrize("given", ["true", True, "1"])
def test_booleans(given: object) -> None:
    options = parse_options({"render": given, "outputs": given})
    assert options.render is options.outputs is True


def test_null_leaves_what_the_model_says() -> None:
    assert parse_options({"confidence": None, "merged": True}, Found).task == {"merged": True}


def test_nothing_asked() -> None:
    assert parse_options({}) == Options()


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
        ("render", "maybe"),
        ("outputs", 1),
    ],
)
def test_invalid(name: str, given: object) -> None:
    error = refused(lambda: parse_options({name: given}), 422, "invalid_parameter", name)
    assert error.details["parameter"] == name
    assert len(error.message) < 250


def test_query_wins_over_body() -> None:
    body = Options(TraceLevel.ON, ("5",), task={"a": 1, "b": 2})
    query = Options(TraceLevel.OFF, None, True, task={"b": 3})
    assert body.overridden_by(query) == Options(TraceLevel.OFF, ("5",), True, task={"a": 1, "b": 3})
    assert body.overridden_by(Options(None, (), None)).capture == ()
