import pytest

from engine.pnnx.tensor_type import (
    ELEMENT_SIZES,
    TensorType,
    byte_count,
    format_tensor_type,
    parse_tensor_type,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1,3,?,224)f32", TensorType((1, 3, None, 224), "f32")),
        ("(?)i64", TensorType((None,), "i64")),
        ("()f32", TensorType((), "f32")),
        ("(0,3)bf16", TensorType((0, 3), "bf16")),
        ("(2)null", TensorType((2,), "null")),
        ("(%batch,3,%size)f32", TensorType((None, 3, None), "f32", ((0, "batch"), (2, "size")))),
    ],
)
def test_a_type_is_read_and_written(text: str, expected: TensorType) -> None:
    assert parse_tensor_type(text) == expected
    assert format_tensor_type(expected) == text


def test_element_sizes_are_those_of_pytorch() -> None:
    assert ELEMENT_SIZES == {
        "null": 0, "f32": 4, "f64": 8, "f16": 2, "i32": 4, "i64": 8, "i16": 2, "i8": 1, "u8": 1, "bool": 1,
        "c64": 8, "c128": 16, "c32": 4, "bf16": 2,
    }  # fmt: skip
    assert all(parse_tensor_type(f"(1){dtype}").dtype == dtype for dtype in ELEMENT_SIZES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a type"),
        ("(1,2)", "is not a type"),
        ("1,2f32", "is not a type"),
        ("((1,2))f32", "is not a type"),
        ("(1,2)f32 ", "is not a type"),
        ("(1,2)F32", "unknown type 'F32'"),
        ("(1,,2)f32", "'' is no extent"),
        ("(1,)f32", "'' is no extent"),
        ("(+1)f32", "'+1' is no extent"),
        ("(1.0)f32", "'1.0' is no extent"),
        ("(²)f32", "'²' is no extent"),
        ("(%)f32", "'%' is no extent"),
        ("(-1)f32", "'-1' is a negative extent"),
        (f"({10**20})f32", "is no extent"),
        (f"({2**61})f32", "overflows"),
        (f"({2**40},{2**40},0)i8", "overflows"),
    ],
)
def test_a_malformed_type_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        parse_tensor_type(text)
    assert problem in str(caught.value)


def test_byte_count_is_elements_times_size() -> None:
    assert byte_count((2, 3), "c128") == 96
    assert byte_count((), "f64") == 8
    assert byte_count((5, 0), "f64") == 0
    assert byte_count((5,), "null") == 0
    assert byte_count((2**60 - 1,), "f64") == 2**63 - 8
