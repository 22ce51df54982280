import struct
from itertools import product

import numpy as np
import pytest

from engine import PNNX_STORAGE, Array
from service.codec import decode
from service.codec.npy import read_npy
from tests.cases import check_each
from tests.service.codec.payloads import LIMITS, RAW, TWO, VECTOR, npy, port, refused


def raw_npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes((version, 0)) + length + header.encode("latin-1") + data


def test_every_dtype() -> None:
    dtypes = [code for code in PNNX_STORAGE if code not in ("c32", "bf16")]
    shapes: list[tuple[int, ...]] = [(), (0, 3), (2, 3), (4,), (1, 1, 5)]

    def check(case: tuple[str, tuple[int, ...]]) -> None:
        dtype, shape = case
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(PNNX_STORAGE[dtype])
        ports = port(dtype, (None,) * len(shape))
        read = decode(npy(array), "application/x-npy", ports, RAW, LIMITS).inputs["0"]
        assert read.dtype == array.dtype
        assert read.flags.c_contiguous
        np.testing.assert_array_equal(read, array, strict=True)

    check_each(product(dtypes, shapes), check)


def test_elements_are_not_copied() -> None:
    body = npy(np.ones((2, 3), np.float32))
    read = decode(body, "application/x-npy", VECTOR, RAW, LIMITS).inputs["0"]
    assert np.shares_memory(read, np.frombuffer(body, np.uint8))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.arange(6, dtype=np.float16).reshape(2, 3),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    ],
    ids=["f64", "f16", "big-endian", "fortran"],
)
def test_other_floats_and_orders(array: Array) -> None:
    read = decode(npy(array), None, VECTOR, RAW, LIMITS).inputs["0"]
    assert read.dtype == np.dtype("<f4")
    assert read.flags.c_contiguous
    np.testing.assert_array_equal(read, [[0, 1, 2], [3, 4, 5]])


def test_nan_and_infinities_are_kept() -> None:
    array = np.array([[np.nan, np.inf, -np.inf]])
    np.testing.assert_array_equal(decode(npy(array), None, VECTOR, RAW, LIMITS).inputs["0"], array)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_and_key_order(version: int) -> None:
    body = raw_npy("{'shape': (2L,), 'fortran_order': False, 'descr': '<i2'}\n", b"\1\0\2\0", version)
    assert read_npy(body, LIMITS).tolist() == [1, 2]


def test_invalid_npy() -> None:
    cases = [
        (b"\x93NUMP", "begins with"),
        (b"\x93NUMPY", "version"),
        (b"\x93NUMPY\1\0\xff\xff{}  ", "header"),
        (b"\x93NUMPY\4\0" + b"\0" * 20, "version"),
        (raw_npy(""), "ends early"),
        (raw_npy("{}"), "header"),
        (raw_npy("{'descr': '<f4'}"), "header"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': ()}"), "header"),
        (raw_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"), "header"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os')}"), "header"),
        (raw_npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "type '|O'"),
        (raw_npy("{'descr': '<U9', 'fortran_order': False, 'shape': (1,)}"), "type '<U9'"),
        (raw_npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,)}"), "type"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': '1'}"), "0 bytes follow"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,,1)}"), "shape (1,,1)"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 33 + ")}"), "at most 32"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", b"1234567"), "7 bytes follow"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", b"123456789"), "9 bytes follow"),
        (raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}" + " " * 5000), "header"),
    ]

    def check(case: tuple[bytes, str]) -> None:
        body, text = case
        refused(lambda: decode(body, "application/x-npy", VECTOR, RAW, LIMITS), 400, "invalid_npy", text)

    check_each(cases, check)


@pytest.mark.parametrize("space", ["", " ", "\t \n", " " * 400])
def test_spaces_of_a_header_mean_nothing(space: str) -> None:
    items = ("'descr': '<f4'", "'fortran_order': False", "'shape': (1, 3), ")
    text = f"{{{space}" + f"{space},{space}".join(items) + f"{space}}}{space}"
    read = read_npy(raw_npy(text, np.ones(3, np.float32).tobytes()), LIMITS)
    np.testing.assert_array_equal(read, np.ones((1, 3), np.float32), strict=True)


def test_object_arrays_are_never_unpickled() -> None:
    body = npy(np.array([{}], dtype=object))
    refused(lambda: decode(body, None, VECTOR, RAW, LIMITS), 400, "invalid_npy", "|O")


@pytest.mark.parametrize("shape", ["20001,", "0, 4000000000, 4000000000", "999999999999999999, 9"])
def test_too_many_elements(shape: str) -> None:
    body = raw_npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})}}")
    refused(lambda: decode(body, None, VECTOR, RAW, LIMITS), 413, "tensor_too_large")


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.ones(3, np.float32), "wrong_rank"),
        (np.ones((1, 3), np.int32), "wrong_dtype"),
        (np.ones((1, 3), np.bool_), "wrong_dtype"),
        (np.ones((1, 3), np.complex64), "wrong_dtype"),
        (np.full((1, 3), 1e300), "out_of_range"),
    ],
)
def test_does_not_fit_the_model(array: Array, code: str) -> None:
    refused(lambda: decode(npy(array), None, VECTOR, RAW, LIMITS), 422, code)


def test_integers_of_another_width() -> None:
    body = npy(np.array([1, -2], np.int64))
    assert decode(body, None, port("i32"), RAW, LIMITS).inputs["0"].dtype == np.int32
    refused(lambda: decode(body, None, port("u8"), RAW, LIMITS), 422, "out_of_range", "u8")


def test_one_array_for_two_inputs() -> None:
    refused(lambda: decode(npy(np.ones(2)), None, TWO, RAW, LIMITS), 422, "missing_input", "takes 2 inputs")
