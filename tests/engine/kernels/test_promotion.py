import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernels.promotion import promote, result_type, scalar_dtype
from engine.spec import TensorSpec
from tests.cases import check_each
from tests.golden.elementwise_inputs import SCALARS

TABLE: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "promotion.json").read_text()
)


def operand(name: str) -> Any:
    if name in SCALARS:
        return SCALARS[name]
    dtype, _, without_dimensions = name.partition(".")
    return np.zeros(() if without_dimensions else (1,), dtype)


def test_result_type_is_pytorchs_for_every_pair() -> None:
    def check(left: str) -> None:
        got = {right: str(result_type(operand(left), operand(right))) for right in TABLE}
        assert got == TABLE[left]

    check_each(TABLE, check)


def test_table_covers_tensors_of_both_ranks_and_every_kind_of_number() -> None:
    assert len(TABLE) == 2 * 11 + 4
    assert TABLE["int32"]["a float"] == "float32"
    assert TABLE["float16"]["float64.0"] == "float16"


def test_result_type_reads_specs_like_tensors() -> None:
    half = TensorSpec((2, 3), np.dtype(np.float16))
    double = TensorSpec((), np.dtype(np.float64))
    assert result_type(half, double) == np.float16
    assert result_type(TensorSpec((0,), np.dtype(np.int8)), double) == np.float64


def test_result_type_of_many_operands() -> None:
    low, x, high = np.zeros((), np.float32), np.zeros(2, np.int16), 3
    assert result_type(x, high) == np.int16
    assert result_type(low, x, high) == np.float32


def test_result_type_needs_an_operand() -> None:
    with pytest.raises(ValueError, match="at least one"):
        result_type()


def test_an_integer_never_widens_a_float() -> None:
    assert promote(np.dtype(np.int64), np.dtype(np.float16)) == np.float16
    assert promote(np.dtype(np.float16), np.dtype(np.int64)) == np.float16


@pytest.mark.parametrize(
    ("value", "dtype"), [(True, "bool"), (1, "int64"), (1.0, "float32"), (1j, "complex64")]
)
def test_scalar_dtype(value: complex, dtype: str) -> None:
    assert scalar_dtype(value) == dtype
