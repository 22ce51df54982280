import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from engine.kernels.elementwise import BINARY, UNARY, clamp
from engine.kernels.functions import MORE_BINARY
from engine.kernels.special import erf, lgamma
from tests.cases import check_each
from tests.golden.elementwise_inputs import DTYPES, MIXED, POWERS, mixed_values, pair, values

Array = npt.NDArray[Any]

with np.load(Path(__file__).parents[2] / "golden" / "elementwise.npz") as archive:
    GOLDEN: dict[str, Array] = dict(archive)

EXACT = frozenset(
    (
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "positive",
        "square",
        "ceil",
        "floor",
        "round",
        "trunc",
        "sign",
        "fmod",
        "remainder",
        "floor_divide",
        "maximum",
        "minimum",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_not",
        "bitwise_left_shift",
        "bitwise_right_shift",
    )
)
"""Functions that IEEE 754 or integer arithmetic leaves no choice; of the others the last bits may differ."""

UNSIGNED_ZEROS = frozenset(("maximum", "minimum", "remainder"))
"""Functions in which the sign of a zero is an accident of PyTorch's vector code."""

RTOL = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12, "complex64": 2e-6, "complex128": 1e-12}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def assert_same(name: str, got: Array, wanted: Array) -> None:
    assert isinstance(got, np.ndarray)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if name in EXACT and wanted.dtype.kind != "c":
        np.testing.assert_array_equal(got, wanted)
        if wanted.dtype.kind == "f" and name not in UNSIGNED_ZEROS:
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])
    else:
        rtol = RTOL.get(str(wanted.dtype), 0)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol if wanted.dtype.kind == "c" else 0)


def test_unary_is_pytorchs() -> None:
    def check(case: tuple[str, str]) -> None:
        name, dtype = case
        x = values(dtype)
        wanted = GOLDEN.get(f"{name}/{dtype}")
        if wanted is None:
            with pytest.raises(TypeError, match=f"{name} is not defined for {dtype}"):
                UNARY[name](x)
            return
        assert_same(name, UNARY[name](x), wanted)
        assert UNARY[name].result_dtype(x) == wanted.dtype

    check_each(product(UNARY, DTYPES), check)


def test_binary_is_pytorchs_on_every_pair_of_values() -> None:
    def check(case: tuple[str, str]) -> None:
        name, dtype = case
        a, b = pair(name, dtype)
        wanted = GOLDEN.get(f"{name}/{dtype}")
        if wanted is None:
            with pytest.raises(TypeError, match=f"{name} is not defined for {dtype}"):
                BINARY[name](a, b)
            return
        assert_same(name, BINARY[name](a, b), wanted)
        assert BINARY[name].result_dtype(a, b) == wanted.dtype

    check_each(product(BINARY, DTYPES), check)


def test_binary_of_unlike_operands_is_pytorchs() -> None:
    def check(case: tuple[str, Any, Any]) -> None:
        name, left, right = case
        a, b = (mixed_values(*x) if isinstance(x, tuple) else x for x in (left, right))
        wanted = GOLDEN.get(f"{name}/{left}/{right}")
        if wanted is None and name == "sub":
            return  # PyTorch refuses to subtract bools from anything; here they count as 0 and 1
        if wanted is None:
            with pytest.raises((TypeError, ArithmeticError)):
                BINARY[name](a, b)
            return
        assert_same(name, BINARY[name](a, b), wanted)

    check_each(MIXED, check)


def test_power_by_a_number_is_pytorchs() -> None:
    def check(case: tuple[str, float]) -> None:
        dtype, exponent = case
        wanted = GOLDEN.get(f"pow/{dtype}/{exponent}")
        if wanted is None:
            with pytest.raises(ArithmeticError, match="no negative powers"):
                BINARY["pow"](values(dtype), exponent)
            return
        assert_same("pow", BINARY["pow"](values(dtype), exponent), wanted)

    check_each(product(DTYPES, POWERS), check)


def test_golden_has_every_function() -> None:
    assert {key.split("/")[0] for key in GOLDEN} == set(UNARY) | set(BINARY)


@pytest.mark.parametrize("name", ["add", "div", "pow", "atan2", "maximum"])
def test_the_result_goes_to_scratch_that_fits(name: str) -> None:
    a, b = np.array([[1.0, 2.0, 3.0]], np.float32), np.array([[4.0], [5.0]], np.float32)
    wanted = BINARY[name](a, b)
    scratch = np.empty((2, 3), np.float32)
    assert BINARY[name](a, b, scratch) is scratch
    np.testing.assert_array_equal(scratch, wanted)


def test_power_may_overwrite_its_base() -> None:
    def check(exponent: float) -> None:
        base = np.array([0.5, 2.0, 3.0], np.float32)
        wanted = BINARY["pow"](base.copy(), exponent)
        assert BINARY["pow"](base, exponent, base) is base
        np.testing.assert_array_equal(base, wanted)

    check_each(POWERS, check)


def test_unary_may_overwrite_its_argument() -> None:
    def check(name: str) -> None:
        x = np.array([0.25, 0.5, 0.75], np.float32)
        if name == "bitwise_not":
            x = x.astype(np.int64)
        wanted = UNARY[name](x.copy())
        got = UNARY[name](x, x)
        np.testing.assert_array_equal(got, wanted)
        assert (got is x) == (wanted.dtype == x.dtype)

    check_each(UNARY, check)


@pytest.mark.parametrize(
    "scratch", [np.empty((3,), np.float64), np.empty((3, 3), np.float32), np.empty(1, np.float32)]
)
def test_scratch_that_does_not_fit_is_left_alone(scratch: Array) -> None:
    a = np.ones(3, np.float32)
    scratch[...] = 7
    assert BINARY["add"](a, a, scratch) is not scratch
    assert UNARY["neg"](a, scratch) is not scratch
    assert (scratch == 7).all()


def test_unary_never_returns_its_argument() -> None:
    def check(name: str) -> None:
        x = np.array([1, 2], np.int64) if name == "bitwise_not" else np.array([0.25, 0.5], np.float32)
        before = x.copy()
        assert not np.shares_memory(UNARY[name](x), x)
        np.testing.assert_array_equal(x, before)

    check_each(UNARY, check)


def test_tensors_without_dimensions_stay_arrays() -> None:
    x = np.array(0.5, np.float32)
    assert isinstance(UNARY["sin"](x), np.ndarray)
    assert isinstance(BINARY["add"](x, 1), np.ndarray)
    assert BINARY["add"](x, x).shape == ()


def test_shapes_that_do_not_broadcast_are_both_named() -> None:
    with pytest.raises(ValueError, match=r"add cannot broadcast \(2, 3\) with \(4,\)"):
        BINARY["add"](np.zeros((2, 3)), np.zeros(4))
    with pytest.raises(ValueError, match=r"mul cannot broadcast \(2, 3\) with \(2, 4\)"):
        BINARY["mul"](np.zeros((2, 3), np.int8), np.zeros((2, 4)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="the result has too many elements"):
        BINARY["add"].broadcast((10**18, 28), (10**18, 1))


@pytest.mark.parametrize("name", ["floor_divide", "fmod", "remainder"])
def test_integers_are_not_divided_by_zero(name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        BINARY[name](np.array([1, 2]), np.array([1, 0]))
    with pytest.raises(ZeroDivisionError):
        BINARY[name](np.array([1, 2]), 0)


def test_integers_have_no_negative_powers_but_tensors_of_them_do() -> None:
    base = np.array([-1, 1, 2, 0])
    with pytest.raises(ArithmeticError, match="no negative powers"):
        BINARY["pow"](base, -1)
    np.testing.assert_array_equal(BINARY["pow"](base, np.array(-3)), [-1, 1, 0, 0])


def test_an_operand_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="a tensor or a number, got str"):
        BINARY["add"](np.zeros(2), "1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "low", "high", "wanted"),
    [
        (np.array([-1.5, 0.5, 3]), 0.0, 1.0, np.array([0, 0.5, 1])),
        (np.array([-1.0, np.nan], np.float32), 2, 1, np.array([1, np.nan], np.float32)),
        (np.array([-7, 7, 0]), 0.5, 2, np.array([0.5, 2, 0.5], np.float32)),
        (np.array([1, 5], np.uint8), None, 3, np.array([1, 3], np.uint8)),
        (np.array([1, 5]), np.array([2, 9]), None, np.array([2, 9])),
        (np.array([1.0, 5], np.float16), np.array(0.1), 2.5, np.array([1, 2.5], np.float16)),
        (np.array([[1], [2]]), np.array([2, 0]), None, np.array([[2, 1], [2, 2]])),
    ],
)
def test_clamp(x: Array, low: Any, high: Any, wanted: Array) -> None:
    got = clamp(x, low, high)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_clamp_does_not_know_complex_numbers() -> None:
    with pytest.raises(TypeError, match="clamp"):
        clamp(np.array([1j]), 0, 1)


def test_erf_against_the_c_library() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), [0.0, 1e-300, np.inf, -np.inf]])
    wanted = np.array([math.erf(value) for value in x])
    np.testing.assert_allclose(erf(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(erf(x.astype(np.float32)), wanted, rtol=6e-7, atol=1e-40)
    assert np.abs(erf(x.astype(np.float32))).max() == 1
    assert np.isnan(erf(np.array([np.nan, np.nan], np.float32))).all()


def test_lgamma_against_the_c_library() -> None:
    x = np.concatenate([np.linspace(-30.3, 60, 4001), [1, 2, 1e-300, 1e5, 1e300, np.inf]])
    wanted = np.array([math.lgamma(value) for value in x])
    np.testing.assert_allclose(lgamma(x), wanted, rtol=1e-13, atol=1e-14)
    assert np.isposinf(lgamma(np.array([0.0, -1, -5, -np.inf]))).all()
    assert np.isnan(lgamma(np.array([np.nan]))).all()


@pytest.mark.parametrize("exponent", [2, 2.0, np.array(2), np.array([2], np.float32)])
def test_ldexp_keeps_the_dtype_of_its_tensor(exponent: Any) -> None:
    """A Python number does not make float32 float64: PyTorch's result is float32."""
    got = MORE_BINARY["ldexp"](np.array([1.5, -3], np.float32), exponent)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [6, -12])
