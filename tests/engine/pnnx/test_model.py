import numpy as np
import pytest

import engine.pnnx
from engine.errors import PnnxError
from engine.pnnx import Attribute, Graph, Operator, TensorType


def test_the_package_exports_what_it_says() -> None:
    assert engine.pnnx.__all__ == [
        "Attribute",
        "Graph",
        "Operator",
        "ParameterValue",
        "TensorType",
        "read",
        "write",
    ]
    assert all(hasattr(engine.pnnx, name) for name in engine.pnnx.__all__)


def test_an_attribute_is_a_read_only_view_of_its_bytes() -> None:
    data = bytearray(np.arange(6, dtype="<f4").tobytes())
    attribute = Attribute((2, 3), "f32", memoryview(data))
    array = attribute.array()
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not array.flags.writeable
    data[0:4] = np.float32(9).tobytes()
    assert array[0, 0] == 9


def test_an_attribute_may_be_unaligned() -> None:
    data = b"\0" + np.arange(3, dtype="<f8").tobytes()
    array = Attribute((3,), "f64", memoryview(data)[1:]).array()
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bf16", np.dtype("u2")), ("c32", np.dtype([("re", "f2"), ("im", "f2")])), ("bool", np.dtype(bool))],
)
def test_an_attribute_comes_as_it_is_stored(dtype: str, expected: np.dtype[np.generic]) -> None:
    array = Attribute((2, 1), dtype, bytes(2 * expected.itemsize)).array()
    assert array.dtype == expected
    assert array.shape == (2, 1)


def test_an_empty_attribute_and_a_scalar_have_their_shapes() -> None:
    assert Attribute((0, 3), "f32", b"").array().shape == (0, 3)
    assert Attribute((), "i64", bytes(8)).array().shape == ()


def test_an_attribute_of_no_type_has_no_elements() -> None:
    with pytest.raises(PnnxError, match="null has no elements"):
        Attribute((2,), "null", b"").array()


def test_attributes_are_equal_by_type_shape_and_bytes() -> None:
    attribute = Attribute((2,), "i16", b"\1\0\2\0")
    assert attribute == Attribute((2,), "i16", memoryview(b"\1\0\2\0"))
    assert attribute != Attribute((2,), "i16", b"\1\0\3\0")
    assert attribute != Attribute((1, 2), "i16", b"\1\0\2\0")
    assert attribute != Attribute((2,), "f16", b"\1\0\2\0")
    assert attribute != b"\1\0\2\0"
    assert Attribute((1,), "f32", np.float32("nan").tobytes()) == Attribute(
        (1,), "f32", np.float32("nan").tobytes()
    )


def test_an_attribute_cannot_be_hashed_and_shows_shape_and_type() -> None:
    attribute = Attribute((2,), "i8", b"\1\2")
    with pytest.raises(TypeError):
        hash(attribute)
    assert repr(attribute) == "Attribute(shape=(2,), dtype='i8')"


@pytest.mark.parametrize(
    ("shape", "dtype", "size", "problem"),
    [
        ((2,), "f8", 2, "type 'f8' is unknown; expected one of null, f32"),
        ((-2, -2), "i8", 4, "negative extent"),
        ((2,), "f32", 7, "7 bytes for an attribute of .* expected 8"),
        ((2**62, 2), "f32", 0, "overflows"),
    ],
)
def test_an_attribute_must_fit_its_bytes(shape: tuple[int, ...], dtype: str, size: int, problem: str) -> None:
    with pytest.raises(PnnxError, match=problem):
        Attribute(shape, dtype, bytes(size))


@pytest.mark.parametrize("dtype", [">i4", "<i4", "f8", "?", "c8"])
def test_an_array_becomes_an_attribute(dtype: str) -> None:
    array = np.array([[0, 1, 0, 1], [1, 1, 0, 0]]).astype(dtype)[:, ::2]
    attribute = Attribute.from_array(array)
    assert np.array_equal(attribute.array(), array)
    assert attribute.shape == (2, 2)


def test_an_array_of_a_type_that_pnnx_lacks_becomes_none() -> None:
    with pytest.raises(PnnxError, match="'uint64' is unknown"):
        Attribute.from_array(np.zeros(2, np.uint64))


def test_spellings_are_no_part_of_an_operators_value() -> None:
    assert Operator("t", "n", spellings={"a": "1.0"}) == Operator("t", "n")
    assert Graph([Operator("t", "n")]) != Graph([Operator("t", "m")])


def test_tensor_types_can_be_keys() -> None:
    assert {TensorType((1, None), "f32"): 1}[TensorType((1, None), "f32")] == 1
