"""Large JSON documents, which a decoder process parses: they are read as small ones are."""

from functools import partial
from typing import Any

import numpy as np
import orjson
import pytest

from engine import Array
from service.codec import decode, json_document
from service.codec.json_document import (
    LARGE_BYTES,
    MAX_LISTS,
    MAX_OBJECTS,
    MAX_VALUES,
    parse_document,
    read_document,
)
from service.codec.json_numbers import Numbers
from service.codec.json_tensor import parse_data
from service.config.limits import Limits
from service.decoding import NeedsDecoderError, leaving_large_bodies
from service.errors import ServiceError
from tests.service.codec.conftest import Apart
from tests.service.codec.payloads import RAW, VECTOR, decode_json, port, refused

LIMITS = Limits()
COUNT = 40_000
SPACES = b" " * LARGE_BYTES


def array_of(
    apart: Apart,
    text: bytes,
    dtype: str | None = "f4",
    shape: tuple[int, ...] | None = None,
    takes_bare_names: bool = False,
) -> Array:
    document = apart(
        partial(
            parse_document, b'{"inputs":[{"data":%b}]}%b' % (text, SPACES), takes_bare_names=takes_bare_names
        )
    )
    data = document["inputs"][0]["data"]
    assert isinstance(data, Numbers)
    return parse_data(data, shape, None if dtype is None else np.dtype(dtype), LIMITS, "input 'x'")


@pytest.mark.parametrize("shape", [(COUNT,), (200, 200), (1, 1, COUNT), (COUNT, 1, 1), (4, 100, 100)])
def test_large_arrays_have_the_values_and_the_shape_of_their_text(
    apart: Apart, shape: tuple[int, ...]
) -> None:
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    read = array_of(apart, orjson.dumps(array.tolist()))
    assert read.shape == shape
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([True, False], "?"), ([1, 2], "<i8"), ([1, 2.5], "<f4"), ([1, "NaN"], "<f4"), ([1, True], None)],
)
def test_the_dtype_of_numbers_decides_where_none_is_given(
    apart: Apart, values: list[Any], dtype: str | None
) -> None:
    text = orjson.dumps(values * COUNT)
    if dtype is None:
        with pytest.raises(ServiceError, match="boolean"):
            array_of(apart, text, None)
    else:
        read = array_of(apart, text, None)
        assert read.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(read, np.array([float(v) for v in values] * COUNT).astype(dtype))


def test_complex_numbers_are_pairs(apart: Apart) -> None:
    pairs = np.arange(2 * COUNT, dtype=np.float64).reshape(-1, 2)
    read = array_of(apart, orjson.dumps(pairs.tolist()), "c8")
    np.testing.assert_array_equal(read, (pairs[:, 0] + 1j * pairs[:, 1]).astype(np.complex64))
    with pytest.raises(ServiceError, match="pairs"):
        array_of(apart, orjson.dumps(np.zeros((COUNT, 3)).tolist()), "c8")


@pytest.mark.parametrize(("value", "dtype"), [((1 << 53) + 1, "i8"), ((1 << 64) - 1, "u8")])
def test_integers_keep_all_their_digits(apart: Apart, value: int, dtype: str) -> None:
    text = orjson.dumps([value] * COUNT)
    assert array_of(apart, text, dtype).tolist() == [value] * COUNT
    with pytest.raises(ServiceError, match="out of range"):
        array_of(apart, text, "i4")


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (b"[1]", "differ in depth or length at depth 2"),
        (b"1,2", "differ in depth or length at depth 2"),
        (b"[1,[2]]", "differ in depth or length at depth 3"),
        (b'[1,"x"]', "a string that is not NaN"),
        (b"[1,null]", "null"),
        (b"[1,{}]", "an object"),
        (b"[1,true]", "a boolean"),
    ],
)
def test_errors_are_those_of_small_documents(apart: Apart, inner: bytes, message: str) -> None:
    text = b"[" + b"[1,2]," * COUNT + inner + b"]"
    with pytest.raises(ServiceError, match=message) as caught:
        array_of(apart, text)
    assert (caught.value.status, caught.value.code) == (400, "invalid_tensor")
    with pytest.raises(ServiceError) as here:
        parse_data(orjson.loads(text), None, np.dtype("f4"), LIMITS, "input 'x'")
    assert here.value.body() == caught.value.body()


def test_small_and_large_lists_of_a_large_document(apart: Apart) -> None:
    numbers = [1] * COUNT
    document = {
        "shape": [1, COUNT],
        "data": numbers,
        "x": {"y": [[numbers, "text"], {"z": []}]},
        "ä": "ö" * 9,
    }
    read = apart(lambda: parse_document(orjson.dumps(document) + SPACES))
    assert isinstance(read["data"], Numbers)
    assert isinstance(read["x"]["y"][0][0], Numbers)
    read["data"] = read["x"]["y"][0][0] = numbers
    assert read == document


def test_bare_names_of_numbers_are_taken_only_where_that_is_asked_for(apart: Apart) -> None:
    for text in (b"[1.5,NaN,-Infinity]", b"[" + b"1.5,NaN,-Infinity," * COUNT + b"Infinity]"):
        array = array_of(apart, text, takes_bare_names=True)
        assert np.isnan(array[1])
        assert array[2] == -np.inf
        with pytest.raises(orjson.JSONDecodeError):
            array_of(apart, text)


def test_integers_beyond_all_dtypes_in_documents_with_bare_names(apart: Apart) -> None:
    text = b'{"a":NaN,"b":1%b}' % (b"0" * 30) + SPACES
    assert apart(partial(parse_document, text, takes_bare_names=True)).keys() == {"a", "b"}


def test_errors_name_their_place(apart: Apart) -> None:
    text = '{"ä":[' + "1," * LARGE_BYTES + '1],\n\n "x": ?}'
    with pytest.raises(orjson.JSONDecodeError) as caught:
        apart(lambda: parse_document(text.encode()))
    with pytest.raises(orjson.JSONDecodeError) as here:
        orjson.loads(text)
    assert (caught.value.lineno, caught.value.colno) == (here.value.lineno, here.value.colno) == (3, 7)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (b"[" + b"[]," * MAX_LISTS + b"0]", "lists"),
        (b"[" + b"{}," * (MAX_OBJECTS + 1) + b"0]", "objects"),
        (b"[" * (MAX_LISTS + 1), "lists"),
        (b"[" + b'"a",' * MAX_VALUES + b"0]", "values"),
    ],
)
def test_documents_of_too_many_parts_are_refused(apart: Apart, text: bytes, unit: str) -> None:
    with pytest.raises(ServiceError) as caught:
        apart(lambda: parse_document(text + SPACES))
    assert (caught.value.status, caught.value.code) == (413, "too_many_values")
    assert caught.value.details["unit"] == unit


def test_lists_and_objects_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_document, "_parse", lambda *_: pytest.fail("parsed"))
    with pytest.raises(ServiceError):
        read_document(b"{" * (MAX_OBJECTS + 1), {})


@pytest.mark.parametrize("depth", [900, 1000, 2000])
def test_deep_documents_are_refused(apart: Apart, depth: int) -> None:
    body = b'{"inputs":[{"data":%b%b}]}%b' % (b"[" * depth, b"]" * depth, SPACES)
    with pytest.raises(ServiceError) as caught:
        apart(lambda: decode_json(body, port("f32")))
    assert caught.value.code in ("invalid_json", "invalid_tensor")


def test_json_has_a_bound_of_its_own() -> None:
    body = b'{"inputs":[{"data":[1,2,3]}]}'
    limits = Limits(json_bytes=len(body) - 1)
    error = refused(
        lambda: decode(body, "application/json", VECTOR, RAW, limits), 413, "body_too_large", "npy"
    )
    assert error.details == {"limit": len(body) - 1, "unit": "bytes"}


def test_workers_leave_large_documents_to_others() -> None:
    with leaving_large_bodies():
        assert parse_document(b"[1]") == [1]
        with pytest.raises(NeedsDecoderError):
            parse_document(b"[1]" + SPACES)


def test_a_body_of_the_codec_with_a_large_array(apart: Apart) -> None:
    values = np.random.default_rng(2).standard_normal(15_000).astype(np.float32)
    body = orjson.dumps({"inputs": [{"name": "0", "data": values.tolist()}]}) + SPACES
    decoded = apart(lambda: decode_json(body, port("f32")))
    np.testing.assert_array_equal(decoded.inputs["0"], values)
    body = b'{"inputs":[{"data":[' + b"1," * 21_000 + b"1]}]}" + SPACES
    error = refused(lambda: apart(lambda: decode_json(body, port("f32"))), 413, "tensor_too_large")
    assert error.details["limit"] == 20_000
