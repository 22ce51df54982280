"""Every function over all binades against float64, with the errors that their docstrings name."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.compiler.emit.vector_math import exp_below_zero
from engine.dtypes import Array
from tests.cases import check_each
from tests.engine.compiler.emit.points import POINTS
from tests.engine.compiler.harness import every_target, run
from tests.engine.compiler.pointwise_kernel import Pointwise, applied, values_of

Reference = Callable[[Array], Any]


def _ulps(result: Array, exact: Array) -> Any:
    """Return the distance of float32 results from float64 ones in units of the exact result's last place."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.maximum(np.spacing(np.minimum(np.abs(rounded), np.float32(3e38))), 2.0**-149)
        same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
        distance = np.abs(result - exact) / unit.astype(np.float64)
    return np.where(same, 0, distance)


def _erf(x: Array) -> Any:
    return np.vectorize(math.erf, otypes=[float])(x)


EXACT: dict[str, tuple[Reference, float]] = {
    "abs": (np.abs, 0),
    "ceil": (np.ceil, 0),
    "erf": (_erf, 4),
    "exp": (np.exp, 0.9),
    "expm1": (np.expm1, 2.5),
    "floor": (np.floor, 0),
    "log": (np.log, 1),
    "neg": (np.negative, 0),
    "reciprocal": (lambda x: 1 / x, 0.51),
    "relu": (lambda x: np.maximum(x, 0), 0),
    "relu6": (lambda x: np.clip(x, 0, 6), 0),
    "round": (np.rint, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "sqrt": (np.sqrt, 0.51),
    "square": (np.square, 0.51),
    "tanh": (np.tanh, 4),
    "trunc": (np.trunc, 0),
}


@every_target
def test_error_over_all_binades(target: Target) -> None:
    def check(name: str) -> None:
        reference, bound = EXACT[name]
        with np.errstate(all="ignore"):
            exact = np.asarray(reference(POINTS.astype(np.float64)))
        worst = _ulps(values_of(target, POINTS, name), exact)
        place = int(np.argmax(worst))
        print(name, worst[place], POINTS[place])
        assert worst[place] <= bound * (1 if target.has_fma else 1.5), (POINTS[place], exact[place])

    check_each(EXACT, check)


@every_target
def test_waves(target: Target) -> None:
    """Up to 2^28, far beyond any position; what is larger stays within -1 and 1."""
    multiples = (np.arange(-400, 400) * (math.pi / 2)).astype(np.float32)
    points = np.concatenate(
        [POINTS[np.abs(POINTS) <= 2.0**28], multiples, np.linspace(-30, 30, 4000, dtype=np.float32)]
    )
    points, endless = (
        np.resize(points, -(-points.size // 16) * 16),
        np.array([np.inf, -np.inf, np.nan, np.nan] * 4),
    )
    for name, reference in (("sin", np.sin), ("cos", np.cos)):
        assert _ulps(values_of(target, points, name), reference(points.astype(np.float64))).max() <= 2
        far = values_of(target, POINTS, name)[np.isfinite(POINTS)]
        assert (np.abs(far) <= 1).all()
        assert np.isnan(values_of(target, endless.astype(np.float32), name)).all()


@every_target
def test_powers(target: Target) -> None:
    def check(exponent: float) -> None:
        with np.errstate(all="ignore"):
            exact = np.power(POINTS.astype(np.float64), exponent)
            if exponent == 0.5:
                exact = np.sqrt(POINTS.astype(np.float64)) + 0.0
        result = values_of(target, POINTS, "pow", exponent)
        normal = ~((np.abs(exact) < 2.0**-100) | (np.abs(exact) > 2.0**120)) & (np.abs(POINTS) < np.inf)
        assert _ulps(result, exact)[normal].max() <= 4

    check_each((-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 9.0), check)


@every_target
@pytest.mark.parametrize(("name", "reference"), [("maximum", np.maximum), ("minimum", np.minimum)])
def test_extremes_hand_nan_on(name: str, reference: np.ufunc, target: Target) -> None:
    values = np.array([1, 2, math.nan, math.inf, -math.inf, -3, 0, 5], np.float32)
    left, right = np.repeat(values, 8), np.tile(values, 8)
    kernel = Pointwise(64, 2, apply(name, Leaf(0), Leaf(1)))
    result = run(kernel, target, left, right, np.zeros_like(left))[2]
    np.testing.assert_array_equal(result, reference(left, right))
    np.testing.assert_array_equal(values_of(target, left, name, 1.0), reference(left, np.float32(1)))


@every_target
def test_powers_below_one(target: Target) -> None:
    """The exponential that softmax takes: as exact as its docstring says, 0 where it would be no normal number."""
    points = np.concatenate([np.linspace(-90, 0, 1 << 14), [-np.inf, np.nan, -1e30, -0.0] * 4]).astype(
        np.float32
    )
    result = applied(target, points, exp_below_zero)
    exact = np.exp(points.astype(np.float64))
    normal = exact > 2.0**-125
    assert _ulps(result, exact)[normal].max() <= 2 * (1 if target.has_fma else 1.5)
    tiny = points < -87.69
    np.testing.assert_array_equal(result[tiny | ~(exact > 0) & ~np.isnan(points)], 0)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(points))
