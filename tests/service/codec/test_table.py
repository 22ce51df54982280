import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import PNNX_COMPUTE, Array
from service.codec import decode
from service.codec.table import LARGE_BYTES, MAX_LINE_CHARACTERS, read_table
from service.config.limits import Limits
from service.decoding import NeedsDecoderError, leaving_large_bodies
from service.errors import ServiceError
from tests.service.codec.conftest import Apart
from tests.service.codec.payloads import LIMITS, RAW, TWO, VECTOR, port, refused

DYNAMIC = port("f32", (None, None))
ROWS = np.array([[1, 2.5, -3], [4, 5e-1, np.nan]], np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "1,2.5,-3\n4,5e-1,nan\n",
        "1,2.5,-3\r\n4,5e-1,NaN",
        "\r1,2.5,-3\r4,.5,nan\r",
        " 1, 2.5 ,-3\n\n4,0.5,nan\n\n  \n",
        '"1","2.5","-3"\n4,0.5,nan\n',
        "a,b,c\n1,2.5,-3\n4,0.5,nan\n",
        'sepal_length,"b, the second",c\n1,2.5,-3\n4,0.5,nan\n',
        "\ufeffa,b,c\n1,2.5,-3\n4,0.5,nan\n",
    ],
)
def test_with_and_without_header(text: str) -> None:
    array = decode(text.encode(), "text/csv", VECTOR, RAW, LIMITS).inputs["0"]
    np.testing.assert_array_equal(array, ROWS, strict=True)


def test_header_parameter() -> None:
    body = b"1,2,3\n4,5,6\n"
    assert decode(body, "text/csv; header=present", VECTOR, RAW, LIMITS).inputs["0"].shape == (1, 3)
    refused(
        lambda: decode(b"a,b,c\n1,2,3", "text/csv; header=absent", VECTOR, RAW, LIMITS),
        400,
        "invalid_csv",
        "line 1, column 1",
    )


@pytest.mark.parametrize(
    ("dtype", "text", "expected"),
    [
        ("i64", "9007199254740993,-1", [[9007199254740993, -1]]),
        ("u8", "0,255", [[0, 255]]),
        ("bool", "true,0\nFalse,1", [[True, False], [False, True]]),
        ("c64", "1+2j,3", [[1 + 2j, 3]]),
        ("f16", "0.5,inf", [[0.5, np.inf]]),
    ],
)
def test_dtypes(dtype: str, text: str, expected: object) -> None:
    array = read_table(text.encode(), PNNX_COMPUTE[dtype], LIMITS)
    np.testing.assert_array_equal(array, np.array(expected, PNNX_COMPUTE[dtype]), strict=True)


def test_charset() -> None:
    body = "größe,b,c\n1,2,3".encode("latin-1")
    assert decode(body, "text/csv; charset=iso-8859-1", VECTOR, RAW, LIMITS).inputs["0"].shape == (1, 3)
    refused(lambda: decode(body, "text/csv", VECTOR, RAW, LIMITS), 400, "invalid_csv", "byte 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,x\n4,5,6", "line 1, column 3: 'x' is not a number"),
        ("a,b,c\n1,2,3\n\n4,,6", "line 4, column 2 is empty; expected a number"),
        ("1,2,1_000", "line 1, column 3"),
        ("1,2,3\n4,5", "line 2 has 2 columns; expected 3"),
        ("a,b\n1,2,3", "line 2 has 3 columns; expected 2"),
        ("a,b,c\n", "no line of numbers"),
        ("\n\n", "no line of numbers"),
        ('1,"2,3', "line 1"),
        ('1,"2"x,3', "line 1"),
        ("x" * 200_000 + ",1,2", "field larger than"),
        (
            "a;b;c\n1;2;3\n",
            "line 2, column 1: '1;2;3' is not a number; cells are separated by commas, not by ';'",
        ),
        ("1;2;3\n4;5;6\n", "separated by ';'; expected commas"),
        ("1\t2\t3\n", "separated by tabs; expected commas"),
    ],
)
def test_invalid_csv(text: str, message: str) -> None:
    refused(lambda: decode(text.encode(), "text/csv", DYNAMIC, RAW, LIMITS), 400, "invalid_csv", message)


def test_fraction_for_whole_numbers() -> None:
    body = b"a,b\n1,2.5\n"
    ports = port("i64", (None, 2))
    refused(
        lambda: decode(body, "text/csv", ports, RAW, LIMITS),
        400,
        "invalid_csv",
        "column 2: '2.5' is not a whole number",
    )


def test_booleans_are_named() -> None:
    body = b"true,maybe"
    text = "column 2: 'maybe' is not a number"
    refused(lambda: decode(body, "text/csv", port("bool", (None, 2)), RAW, LIMITS), 400, "invalid_csv", text)


def test_first_line_of_floats_is_no_header_for_whole_numbers() -> None:
    body = b"0.5,1.5\n1,2\n"
    refused(
        lambda: decode(body, "text/csv", port("i64", (None, 2)), RAW, LIMITS), 400, "invalid_csv", "line 1"
    )


@pytest.mark.parametrize(("dtype", "cell"), [("u8", "256"), ("i64", str(1 << 63)), ("f32", "1e39")])
def test_out_of_range(dtype: str, cell: str) -> None:
    ports = port(dtype, (None, 1))
    refused(lambda: decode(cell.encode(), "text/csv", ports, RAW, LIMITS), 422, "out_of_range")


def test_limit_counts_elements_only() -> None:
    row = ",".join("1" * 100)
    body = "\n".join([",".join(["h"] * 100)] + [row] * 200)
    assert decode(body.encode(), "text/csv", port("f32", (None, 100)), RAW, LIMITS).inputs["0"].size == 20_000
    for text in (f"{body}\n{row}", "\n".join("1" * 20_001)):
        refused(partial(decode, text.encode(), "text/csv", DYNAMIC, RAW, LIMITS), 413, "tensor_too_large")


def test_table_for_other_inputs() -> None:
    refused(lambda: decode(b"1,2", "text/csv", TWO, RAW, LIMITS), 422, "missing_input")
    refused(lambda: decode(b"1,2", "text/csv", port("f32", (1, 2, 3)), RAW, LIMITS), 422, "wrong_rank", "CSV")
    assert decode(b"1,2", "text/csv", port(None, None), RAW, LIMITS).inputs["0"].dtype == np.float32


def test_columns_are_counted_in_the_first_line() -> None:
    error = refused(lambda: decode(b"1,2\n3,4", "text/csv", VECTOR, RAW, LIMITS), 422, "wrong_shape", "is 2")
    assert error.details == {"columns": 2, "expected": 3}
    body = b"a;b;c\n1;2;3"
    refused(lambda: decode(body, "text/csv", VECTOR, RAW, LIMITS), 422, "wrong_shape", "commas, not by ';'")


CELLS = st.sampled_from(
    ["0", "-0", "1", "-2.5", "1e3", ".5", "+1", " 7 ", "nan", '"3"', "", "x", "1_0", "[1]", "true"]
)
ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", ",\n"])


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.tuples(st.lists(CELLS, min_size=2, max_size=2), ENDS), min_size=1, max_size=6),
    dtype=st.sampled_from(["f4", "i8"]),
)
def test_lines_that_are_read_at_once_give_what_cell_by_cell_gives(
    rows: list[tuple[list[str], str]], dtype: str
) -> None:
    body = "".join(",".join(cells) + end for cells, end in [(["5", "6"], "\n"), *rows]).encode()
    results: list[object] = []
    for plain in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not plain:
                patch.setattr("service.codec.table._read_plain", lambda *_: None)
            try:
                array = read_table(body, np.dtype(dtype), LIMITS)
                results.append((array.shape, array.tobytes()))
            except ServiceError as error:
                results.append((error.code, error.message, error.details))
    assert results[0] == results[1]


@pytest.mark.parametrize("cell", [b"0.5", b"nan", b'"2"', b".25"])
@pytest.mark.parametrize("count", [20, LARGE_BYTES // 16])
def test_large_tables_are_read_as_small_ones(apart: Apart, count: int, cell: bytes) -> None:
    body = b"a,\xc3\xa4\n" + b"1,2.5\r\n3,%b\n\n" % cell * count
    rows = np.array([[1, 2.5], [3, float(cell.strip(b'"'))]] * count, np.float32)

    def read(text: bytes, charset: str | None = None) -> Array:
        table: Array = apart(lambda: read_table(text, np.dtype("f4"), Limits(), charset=charset))
        return table

    np.testing.assert_array_equal(read(body), rows)
    wide = read(body.decode().encode("utf-16"), charset="utf-16")
    np.testing.assert_array_equal(wide, rows)
    with pytest.raises(ServiceError, match=f"line {3 * count + 4}, column 1: 'x' is not a number"):
        read(body + b"1,2\n\nx,1")
    with pytest.raises(ServiceError, match=f"byte {len(body) + 2}"):
        read(body + b"1,\xff")


def test_workers_leave_large_tables_to_others() -> None:
    with leaving_large_bodies():
        assert read_table(b"1,2", np.dtype("f4"), LIMITS).shape == (1, 2)
        with pytest.raises(NeedsDecoderError):
            read_table(b"1,2\n" * LARGE_BYTES, np.dtype("f4"), Limits())


def test_cells_over_several_lines() -> None:
    body = b'"a\nb",c\n"\n1",2\n3,4\n'
    assert read_table(body, np.dtype("f4"), LIMITS).tolist() == [[1, 2], [3, 4]]


def test_utf_16_in_no_known_order_is_refused() -> None:
    with pytest.raises(ServiceError, match="byte order mark") as caught:
        read_table("1,2\n3,4\n".encode("utf-16-le"), np.dtype("f4"), LIMITS, charset="utf-16")
    assert (caught.value.status, caught.value.code) == (400, "invalid_csv")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"1\n" * 50_000, "tensor_too_large"),
        (b"\n" * 50_000, "tensor_too_large"),
        (b"1\n" + b"1," * 30_000, "tensor_too_large"),
        (b"1" * (MAX_LINE_CHARACTERS + 200_000), "too_many_values"),
    ],
)
def test_tables_that_are_too_large_are_refused_before_a_cell_is_read(
    monkeypatch: pytest.MonkeyPatch, body: bytes, code: str
) -> None:
    monkeypatch.setattr("service.codec.table.numbers", lambda *_: pytest.fail("read"))
    monkeypatch.setattr("service.codec.table.orjson.loads", lambda *_: pytest.fail("read"))
    limits = replace(LIMITS, body_bytes=4 << 20)
    refused(lambda: decode(body, "text/csv", DYNAMIC, RAW, limits), 413, code)


def test_a_large_table_takes_little_more_than_its_own_memory() -> None:
    body = b"0,1.5\n" * 500_000
    tracemalloc.start()
    try:
        array = read_table(body, np.dtype("f4"), Limits())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert array.shape == (500_000, 2)
    assert peak < 2 * array.nbytes + (8 << 20)
