"""Datatypes: names, what inputs take, what outputs become."""

import ml_dtypes
import numpy as np
import pytest

from engine import PNNX_COMPUTE, Port
from service.errors import ServiceError
from service.v2.datatypes import DTYPES, WIRE_SIZES, accepted_datatypes, datatype_of, outgoing, to_bfloat16


def port(dtype: str | None) -> Port:
    return Port("in", "0", (1,), dtype)


def test_every_datatype_of_the_protocol_is_known() -> None:
    sizes = {"BOOL": 1, "FP16": 2, "FP32": 4, "FP64": 8, "BF16": 2}
    sizes |= {f"{sign}INT{bits}": bits // 8 for sign in ("", "U") for bits in (8, 16, 32, 64)}
    assert sizes == WIRE_SIZES
    assert set(DTYPES) == set(sizes)
    assert DTYPES["UINT16"] == np.uint16
    assert DTYPES["INT64"] == np.int64


@pytest.mark.parametrize(
    ("dtype", "datatype"),
    [
        ("f32", "FP32"),
        ("f64", "FP64"),
        ("f16", "FP16"),
        ("bf16", "BF16"),
        ("i8", "INT8"),
        ("i64", "INT64"),
        ("u8", "UINT8"),
        ("bool", "BOOL"),
        ("c64", "FP32"),
        ("c128", "FP64"),
        ("c32", "FP32"),
        (None, "FP32"),
    ],
)
def test_declared_types_have_a_datatype(dtype: str | None, datatype: str) -> None:
    assert datatype_of(port(dtype)) == datatype
    assert datatype in accepted_datatypes(port(dtype))


def test_every_pnnx_type_has_a_datatype() -> None:
    for dtype in PNNX_COMPUTE:
        assert datatype_of(port(dtype)) in DTYPES


def test_input_without_a_type_takes_what_the_engine_computes_with() -> None:
    assert {"BOOL", "FP16", "FP64", "INT64", "UINT8"} <= set(accepted_datatypes(port(None)))
    assert "UINT64" not in accepted_datatypes(port(None))


def test_complex_numbers_go_out_as_pairs() -> None:
    name, array = outgoing(np.array([1 + 2j, 3], np.complex64), "c64")
    assert (name, array.dtype) == ("FP32", np.dtype(np.float32))
    np.testing.assert_array_equal(array, [[1, 2], [3, 0]])


def test_float32_goes_out_as_bf16_where_that_is_declared() -> None:
    assert outgoing(np.zeros(1, np.float32), "bf16")[0] == "BF16"
    assert outgoing(np.zeros(1, np.float32), "f32")[0] == "FP32"
    assert outgoing(np.zeros(1, ">f8"), None)[0] == "FP64"


def test_dtype_without_a_name_is_refused() -> None:
    with pytest.raises(ServiceError, match="no datatype"):
        outgoing(np.zeros(1, "U3"), None)


def test_bfloat16_is_rounded_as_others_round_it() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 10_000, np.uint32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45, 1.00390625, 1.01171875], np.float32)
    values = np.concatenate([bits.view(np.float32), special])
    with np.errstate(invalid="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)
    rounded = to_bfloat16(values).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(rounded.astype(np.float32), expected.astype(np.float32))
