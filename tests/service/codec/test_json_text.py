import tracemalloc
from typing import Any

import numpy as np
import orjson
import pytest

from engine import Array, RunResult
from service.codec import JSON_TYPE, NPZ_TYPE, build_response, encode
from service.codec.json_text import LARGE_BYTES, PIECE_ELEMENTS, dump_json, dump_pieces
from service.config.limits import Limits
from service.errors import ServiceError
from service.tasks.classification import ClassPrediction
from tests.service.codec.test_encode import PORTS, TIMING

RANDOM = np.random.default_rng(5)
LARGE = PIECE_ELEMENTS + 1


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "array",
    [
        floats(LARGE),
        floats(3 * PIECE_ELEMENTS),
        floats(LARGE, 1),
        floats(1, LARGE),
        floats(1, 2, 3, LARGE),
        floats(100, 7, 43),
        floats(2, 1, 3, 5000).transpose(3, 2, 1, 0),
        floats(1, LARGE).astype(np.complex64),
        np.arange(LARGE),
        np.arange(LARGE) % 2 == 0,
        floats(LARGE).astype(np.float16),
        np.where(np.arange(3 * LARGE) % 7, 0.5, np.nan).reshape(3, LARGE),
    ],
)
def test_pieces_are_the_text_of_the_whole(array: Array) -> None:
    value = {"a": 1, "x": array, "y": [{"data": array, "b": [1, 2]}, {"data": array[:2]}]}
    pieces = dump_pieces(value)
    assert len(pieces) > 1
    assert orjson.loads(b"".join(pieces)) == orjson.loads(dump_json(value))


@pytest.mark.parametrize("count", [0, 1, 256, 257, 1000])
def test_long_lists_are_written_in_pieces(count: int) -> None:
    value: list[Any] = [[{"label": str(index), "a": floats(2)}] for index in range(count)]
    assert b"".join(dump_pieces(value)) == dump_json(value)


def test_no_piece_is_of_more_than_some_thousand_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    dumps = orjson.dumps

    def counted(value: Any, **options: Any) -> bytes:
        sizes.append(value.size if isinstance(value, np.ndarray) else 0)
        return dumps(value, **options)

    monkeypatch.setattr("service.codec.json_text.orjson.dumps", counted)
    dump_pieces([{"data": floats(3, 5, 40_000)}])
    assert sum(sizes) == 600_000
    assert max(sizes) <= PIECE_ELEMENTS


def response_of(array: Array) -> dict[str, Any]:
    predictions = [[ClassPrediction("x", 1, 0.5)]]
    return build_response("m", "1", "r", PORTS, RunResult([array], None, {"5": array}), predictions, TIMING)


@pytest.mark.parametrize("media_type", [JSON_TYPE, NPZ_TYPE])
def test_responses_that_are_too_large_are_refused(media_type: str) -> None:
    response = response_of(floats(2, LARGE))
    size = sum(map(len, encode(response, media_type, 0, lambda: 0)))
    assert encode(response, media_type, 0, lambda: 0, Limits(response_bytes=size))
    with pytest.raises(ServiceError) as caught:
        encode(response, media_type, 0, lambda: 0, Limits(response_bytes=size - 1))
    assert (caught.value.status, caught.value.code) == (413, "response_too_large")
    assert caught.value.details == {"limit": size - 1, "unit": "bytes"}


def test_members_of_large_responses_keep_their_order() -> None:
    array = floats(1, LARGE)
    response = response_of(array)
    body = orjson.loads(b"".join(encode(response, JSON_TYPE, 0)))
    assert list(body) == list(response)
    np.testing.assert_array_equal(np.array(body["captured"][0]["data"], np.float32), array)


def test_a_response_that_is_aborted_has_taken_no_more_memory_than_its_limit() -> None:
    array = np.zeros((1, 4_000_000), np.float32)
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError):
            dump_pieces({"data": array}, Limits(response_bytes=2 << 20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("turned", [False, True])
def test_responses_that_will_be_much_too_large_are_refused_before_they_are_written(
    monkeypatch: pytest.MonkeyPatch, turned: bool
) -> None:
    array = floats(3, LARGE_BYTES // 4)
    value = {"data": array.T if turned else array}
    size = sum(map(len, dump_pieces(value)))
    assert dump_pieces(value, Limits(response_bytes=size))
    written: list[Array] = []
    monkeypatch.setattr("service.codec.json_text._array_pieces", written.append)
    with pytest.raises(ServiceError, match=r"about \d+ bytes as JSON") as caught:
        dump_pieces(value, Limits(response_bytes=size * 3 // 4))
    assert (caught.value.status, caught.value.code) == (413, "response_too_large")
    assert written == []
