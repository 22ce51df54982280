import contextlib
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from engine import Array
from service.codec import json_document, number_text
from service.codec.json_document import MAX_LISTS, MAX_VALUES, parse_document
from service.codec.json_tensor import parse_data
from service.codec.number_text import NumberText
from service.config.limits import Limits
from service.errors import ServiceError
from tests.service.codec.payloads import decode_json, port, refused

LIMITS = Limits()
COUNT = 40_000


def parsed(text: bytes, **options: bool) -> Any:
    return parse_document(text, **options)


def array_of(text: bytes, dtype: str | None = "f4", shape: tuple[int, ...] | None = None) -> Array:
    document = parsed(b'{"inputs":[{"data":%b}]}' % text)
    data = document["inputs"][0]["data"]
    assert isinstance(data, NumberText)
    return parse_data(data, shape, None if dtype is None else np.dtype(dtype), LIMITS, "input 'x'")


def text_of(array: Array, **options: Any) -> bytes:
    return json.dumps(array.tolist(), **options).encode()


@pytest.mark.parametrize("shape", [(COUNT,), (200, 200), (1, 1, COUNT), (COUNT, 1, 1), (4, 100, 100)])
@pytest.mark.parametrize("indent", [None, 1])
def test_large_arrays_have_the_values_and_the_shape_of_their_text(
    shape: tuple[int, ...], indent: int | None
) -> None:
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    read = array_of(text_of(array, indent=indent))
    assert read.shape == shape
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([True, False], "?"), ([1, 2], "<i8"), ([1, 2.5], "<f4"), ([1, "NaN"], "<f4"), ([1, True], None)],
)
def test_the_dtype_of_numbers_decides_where_none_is_given(values: list[Any], dtype: str | None) -> None:
    text = orjson.dumps(values * COUNT)
    if dtype is None:
        with pytest.raises(ServiceError, match="boolean"):
            array_of(text, None)
    else:
        read = array_of(text, None)
        assert read.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(read, np.array([float(v) for v in values] * COUNT).astype(dtype))


def test_complex_numbers_are_pairs() -> None:
    pairs = np.arange(2 * COUNT, dtype=np.float64).reshape(-1, 2)
    read = array_of(text_of(pairs), "c8")
    np.testing.assert_array_equal(read, (pairs[:, 0] + 1j * pairs[:, 1]).astype(np.complex64))
    with pytest.raises(ServiceError, match="pairs"):
        array_of(text_of(np.zeros((COUNT, 3))), "c8")


def test_integers_keep_all_their_digits() -> None:
    values = np.full(COUNT, (1 << 53) + 1)
    np.testing.assert_array_equal(array_of(text_of(values), "i8"), values)
    with pytest.raises(ServiceError, match="out of range"):
        array_of(text_of(values), "i4")


def rows(text: bytes) -> bytes:
    """Return `text` behind many even rows of two numbers."""
    return b"[" + b"[1,2]," * COUNT + text + b"]"


@pytest.mark.parametrize(
    "text",
    [
        rows(b"[1]"),
        rows(b"[1,2,3]"),
        rows(b"1,2"),
        rows(b"[[1,2]]"),
        rows(b"[1,[2]]"),
        rows(b"[[1],[2]]"),
        rows(b"[]"),
        rows(b"[1,2],[3]"),
    ],
)
def test_uneven_lists_are_refused(text: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        array_of(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "text",
    [
        rows(b"3[,4]"),
        rows(b"[1],2"),
        rows(b"[1,2][3,4]"),
        rows(b"[1,2]3"),
        rows(b"[1 2]"),
        rows(b"[1,]"),
        rows(b"[,1]"),
        rows(b"[1,2],"),
        rows(b",[1,2]"),
        rows(b"[1,2x]"),
        rows(b'[1,"x"]'),
        rows(b"[1,null]"),
        rows(b"[1,{}]"),
        rows(b"[1,NaN]"),
        b"[" + b"1," * COUNT + b"]",
        b"[" + b"1," * COUNT + b",1]",
        b"[" + b"1," * COUNT + b" ]",
        b"[" + b"1," * COUNT + b"true]",
        b"[1" + b"," * 2 * COUNT + b"1]",
        b"[" + b"1" * (2 * number_text.PIECE_BYTES) + b"]",
    ],
)
def test_what_is_no_json_list_of_numbers_is_refused(text: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        array_of(text)
    assert caught.value.status == 400


def mutants(text: bytes, count: int) -> Iterator[bytes]:
    random = np.random.default_rng(7)
    for _ in range(count):
        changed = bytearray(text)
        for _ in range(random.integers(1, 3)):
            changed[random.integers(len(text))] = random.choice(list(b"[],1 "))
        yield bytes(changed)


@pytest.mark.parametrize(
    "text", [b"[[[1,2],[3,4]],[[5,6],[7,8]],[[9,10],[11,12]]]", b"[1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"]
)
def test_pieces_take_what_the_parser_takes_and_nothing_else(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_text, "PIECE_BYTES", 16)
    taken = 0
    for mutant in mutants(text, 3000):
        expected = reference(mutant)
        end = number_text.find_end(mutant, 0) if mutant[:1] == b"[" else None
        read = None
        if end == len(mutant):
            with contextlib.suppress(ServiceError):
                read = parse_data(NumberText(mutant, 0, end), None, np.dtype("f4"), LIMITS, "x")
        if expected is None:
            assert read is None, mutant
        else:
            assert read is not None, mutant
            np.testing.assert_array_equal(read, expected)
            taken += 1
    assert taken > 100


def reference(text: bytes) -> Array | None:
    try:
        array = np.array(orjson.loads(text), np.float32)
    except ValueError:
        return None
    return array if array.size else None


def test_bare_names_of_numbers_are_taken_only_where_that_is_asked_for() -> None:
    text = b'{"data":[' + b"1.5,NaN,-Infinity," * COUNT + b"Infinity]}"
    array = parse_data(parsed(text, takes_bare_names=True)["data"], None, np.dtype("f4"), LIMITS, "x")
    assert np.isnan(array[1])
    assert array[-1] == np.inf
    with pytest.raises(ServiceError, match="as strings"):
        parse_data(parsed(text)["data"], None, np.dtype("f4"), LIMITS, "x")


def test_only_arrays_of_numbers_under_the_key_data_are_cut_out() -> None:
    numbers = b"[" + b"1," * COUNT + b"1]"
    text = b'{"data" : %b, "x":{"data":\n%b}, "y":%b, "z":["data"], "data2":"data", "w":[{"data":["a"]}]}' % (
        (numbers,) * 3
    )
    document = parsed(text)
    assert isinstance(document["data"], NumberText)
    assert isinstance(document["x"]["data"], NumberText)
    assert document["y"] == [1] * (COUNT + 1)
    assert document["z"] == ["data"]
    assert document["data2"] == "data"
    assert document["w"] == [{"data": ["a"]}]


def test_a_string_that_looks_like_an_array_stays_a_string() -> None:
    numbers = "[" + "1," * COUNT + "1]"
    trap = '"data":' + numbers
    document = parsed(orjson.dumps({"name": trap, "data": 1}))
    assert document == {"name": trap, "data": 1}


def test_errors_behind_a_large_array_name_their_place() -> None:
    text = b'{"data":[' + b"1," * COUNT + b'1],\n\n "x": ?}'
    with pytest.raises(orjson.JSONDecodeError) as caught:
        parsed(text)
    assert caught.value.lineno == 3
    assert caught.value.pos == text.index(b"?")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (b"[" + b"[]," * MAX_LISTS + b"0]", "lists and objects"),
        (b"[" + b"{}," * MAX_LISTS + b"0]", "lists and objects"),
        (b"[" + b"0," * (MAX_VALUES + 1) + b"0]", "values"),
        (b"[" * (MAX_LISTS + 1), "lists and objects"),
    ],
)
def test_documents_of_too_many_parts_are_refused_before_they_are_parsed(
    text: bytes, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.codec.json_document.orjson.loads", lambda _: pytest.fail("parsed"))
    with pytest.raises(ServiceError) as caught:
        parsed(text)
    assert (caught.value.status, caught.value.code) == (413, "too_many_values")
    assert caught.value.details["unit"] == unit


def test_too_many_elements_are_refused_before_any_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"inputs":[{"data":[' + b"0," * COUNT + b"0]}]}"
    monkeypatch.setattr("service.codec.number_text.orjson.loads", lambda text: pytest.fail("parsed"))
    data = NumberText(body, body.index(b"[0"), len(body) - 3)
    with pytest.raises(ServiceError) as caught:
        parse_data(data, None, np.dtype("f4"), Limits(tensor_elements=COUNT), "x")
    assert (caught.value.status, caught.value.code) == (413, "tensor_too_large")
    with pytest.raises(ServiceError, match="shape is"):
        parse_data(data, (2, 2), np.dtype("f4"), LIMITS, "x")


def test_a_large_array_takes_little_more_than_its_own_memory() -> None:
    text = b'{"data":[' + b"0," * 2_000_000 + b"0]}"
    tracemalloc.start()
    try:
        array = parse_data(parsed(text)["data"], None, np.dtype("f4"), LIMITS, "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < array.nbytes + (8 << 20)


def test_a_body_of_the_codec_with_a_large_array() -> None:
    values = np.random.default_rng(2).standard_normal(15_000).astype(np.float32)
    decoded = decode_json({"inputs": [{"name": "0", "data": values.tolist()}]}, port("f32"))
    np.testing.assert_array_equal(decoded.inputs["0"], values)
    body = b'{"inputs":[{"data":[' + b"1," * 21_000 + b"1]}]}" + b" " * json_document.LARGE_BYTES
    error = refused(lambda: decode_json(body, port("f32")), 413, "tensor_too_large")
    assert error.details["limit"] == 20_000
