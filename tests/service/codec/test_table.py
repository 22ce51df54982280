import numpy as np
import pytest

from engine import PNNX_COMPUTE
from service.codec import decode
from service.codec.table import read_table
from tests.service.codec.payloads import LIMITS, RAW, TWO, VECTOR, port, refused

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
    array = read_table(text, PNNX_COMPUTE[dtype], LIMITS)
    np.testing.assert_array_equal(array, np.array(expected, PNNX_COMPUTE[dtype]), strict=True)


def test_charset() -> None:
    body = "größe,b,c\n1,2,3".encode("latin-1")
    assert decode(body, "text/csv; charset=iso-8859-1", VECTOR, RAW, LIMITS).inputs["0"].shape == (1, 3)
    refused(lambda: decode(body, "text/csv", VECTOR, RAW, LIMITS), 400, "invalid_csv", "byte 2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,x\n4,5,6", "line 1, column 3: 'x' is not a number"),
        ("a,b,c\n1,2,3\n\n4,,6", "line 4, column 2: '' is not a number"),
        ("1,2,1_000", "line 1, column 3"),
        ("1,2,3\n4,5", "line 2 has 2 columns; expected 3"),
        ("a,b\n1,2,3", "line 2 has 3 columns; expected 2"),
        ("a,b,c\n", "no line of numbers"),
        ("\n\n", "no line of numbers"),
        ('1,"2,3', "line 1"),
        ('1,"2"x,3', "line 1"),
        ("x" * 200_000 + ",1,2", "field larger than"),
        ("a;b;c\n1;2;3\n", "line 2, column 1"),
    ],
)
def test_invalid_csv(text: str, message: str) -> None:
    refused(lambda: decode(text.encode(), "text/csv", VECTOR, RAW, LIMITS), 400, "invalid_csv", message)


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
        refused(lambda: decode(text.encode(), "text/csv", VECTOR, RAW, LIMITS), 413, "tensor_too_large")  # noqa: B023


def test_table_for_other_inputs() -> None:
    refused(lambda: decode(b"1,2", "text/csv", TWO, RAW, LIMITS), 422, "missing_input")
    refused(lambda: decode(b"1,2", "text/csv", port("f32", (1, 2, 3)), RAW, LIMITS), 422, "wrong_rank", "CSV")
    assert decode(b"1,2", "text/csv", port(None, None), RAW, LIMITS).inputs["0"].dtype == np.float32
