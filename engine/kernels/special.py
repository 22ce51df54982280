"""Special functions over float arrays, which numpy lacks.

They take and return float32 or float64 arrays; `out` may be the argument itself.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from engine.dtypes import Array

_ERF_NUMERATOR = (1.12837915, 0.189663349, 0.0526676113, 0.00373819232, 0.000285058043, 2.06649194e-06)
_ERF_DENOMINATOR = (1.0, 0.501417549, 0.11381751, 0.0149139716, 0.00115733746, 3.82699945e-05)
_ERF_FIT_END = 3.9

_SQRT_PI = math.sqrt(math.pi)
_SERIES_END = 2.5
_SERIES_TERMS = 48
_FRACTION_LEVELS = 48
_ERF_END = 6.0

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_STIRLING_START = 8.0
_HALF_LOG_2PI = math.log(2 * math.pi) / 2


def erf(x: Array, out: Array | None = None) -> Any:
    """Return the error function, in float32 within 5e-7 and in float64 within 1e-14 of the true value."""
    computed = _erf_float64(x) if x.dtype == np.float64 else _erf_float32(x)
    return _store(computed, x, out)


def _store(computed: Any, x: Array, out: Array | None) -> Any:
    if out is None:
        return np.asarray(computed, x.dtype)
    out[...] = computed
    return out


def _horner(coefficients: Iterable[float], x: Any) -> Any:
    """Evaluate a polynomial, its coefficients from the constant term up."""
    reverse = list(coefficients)[::-1]
    total = np.full_like(x, reverse[0])
    for coefficient in reverse[1:]:
        total *= x
        total += x.dtype.type(coefficient)
    return total


def _erf_float32(x: Array) -> Any:
    """Evaluate x · P(x²) / Q(x²), fitted for the least relative error on [0, 3.9]; beyond, erf rounds to 1."""
    bounded = np.clip(x, -_ERF_FIT_END, _ERF_FIT_END)
    squared = np.square(bounded)
    bounded *= _horner(_ERF_NUMERATOR, squared)
    bounded /= _horner(_ERF_DENOMINATOR, squared)
    np.clip(bounded, -1, 1, out=bounded)
    np.copyto(bounded, np.copysign(np.float32(1), x), where=np.abs(x) >= _ERF_FIT_END)
    return bounded


def _erf_float64(x: Array) -> Any:
    """Combine two expansions: a power series near 0, a continued fraction of erfc further out."""
    size = np.minimum(np.abs(x), _ERF_END)
    near = _erf_series(np.minimum(size, _SERIES_END))
    far = 1 - _erfc_fraction(np.maximum(size, _SERIES_END))
    return np.copysign(np.where(size < _SERIES_END, near, far), x)


def _erf_series(x: Any) -> Any:
    """Sum exp(-x²) · 2x/√π · Σ (2x²)ⁿ / (1·3·…·(2n+1)), whose terms are all positive (DLMF 7.6.2)."""
    coefficients = [1.0]
    for n in range(1, _SERIES_TERMS):
        coefficients.append(coefficients[-1] * 2 / (2 * n + 1))
    squared = np.square(x)
    return 2 / _SQRT_PI * x * np.exp(-squared) * _horner(coefficients, squared)


def _erfc_fraction(x: Any) -> Any:
    """Evaluate exp(-x²)/√π · 1/(x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …)))) from the inside (DLMF 7.9.1)."""
    fraction = x
    for level in range(_FRACTION_LEVELS, 0, -1):
        fraction = x + level / 2 / fraction
    return np.exp(-np.square(x)) / (_SQRT_PI * fraction)


def lgamma(x: Array, out: Array | None = None) -> Any:
    """Return log |Γ(x)|, computed in float64; infinite at 0 and the negative integers."""
    wide = np.asarray(x, np.float64)
    positive = np.where(wide < 0.5, 1 - wide, wide)
    direct = _lgamma_positive(positive)
    # Γ(x) Γ(1-x) = π / sin πx; the sine of the distance to an integer is exact at the poles
    reflected = math.log(math.pi) - np.log(np.abs(np.sin(math.pi * (wide - np.rint(wide))))) - direct
    result = np.where(wide < 0.5, reflected, direct)
    return _store(np.where(np.isinf(wide), np.inf, result), x, out)


def _lgamma_positive(x: Any) -> Any:
    """Shift x to 8 or more by Γ(x+1) = x Γ(x), then take Stirling's series (DLMF 5.11.1)."""
    product = np.ones_like(x)
    shifted = x
    for _ in range(int(_STIRLING_START)):
        low = shifted < _STIRLING_START
        product = np.where(low, product * shifted, product)
        shifted = np.where(low, shifted + 1, shifted)
    series = _horner(_STIRLING, 1 / np.square(shifted)) / shifted
    return (shifted - 0.5) * np.log(shifted) - shifted + _HALF_LOG_2PI + series - np.log(product)


def erfc(x: Array, out: Array | None = None) -> Any:
    """Return 1 - erf(x), computed in float64, without loss where erf is nearly 1."""
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    near = 1 - _erf_series(np.minimum(size, _SERIES_END))
    positive = np.where(size < _SERIES_END, near, _erfc_fraction(np.maximum(size, _SERIES_END)))
    return _store(np.where(wide < 0, 2 - positive, positive), x, out)


_HALLEY_STEPS = 4
_WINITZKI = 0.147


def erfinv(x: Array, out: Array | None = None) -> Any:
    """Return the inverse of the error function: infinite at -1 and 1, NaN beyond.

    From Winitzki's approximation, "A handy approximation for the error function and its inverse" (2008), by Halley's
    method on erfc, which keeps its digits near 1.
    """
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    rest = np.where(size < 1, 1 - size, 0.5)
    logarithm = np.log(rest * (2 - rest))
    term = 2 / (math.pi * _WINITZKI) + logarithm / 2
    y = np.sqrt(np.maximum(np.sqrt(np.square(term) - logarithm / _WINITZKI) - term, 0))
    for _ in range(_HALLEY_STEPS):
        step = (erfc(y) - rest) / (-2 / _SQRT_PI * np.exp(-np.square(y)))
        y = y - step / (1 + y * step)
    y = np.where(size < 1, y, np.where(size == 1, np.inf, np.nan))
    return _store(np.copysign(y, wide), x, out)


_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
_DIGAMMA_START = 10.0


def digamma(x: Array, out: Array | None = None) -> Any:
    """Return the derivative of log Γ, computed in float64: infinite at 0, NaN at the negative integers."""
    wide = np.asarray(x, np.float64)
    positive = np.where(wide < 0, 1 - wide, wide)
    total, shifted = np.zeros_like(positive), positive
    for _ in range(int(_DIGAMMA_START)):  # ψ(x) = ψ(x+1) - 1/x
        low = shifted < _DIGAMMA_START
        total = np.where(low, total - 1 / shifted, total)
        shifted = np.where(low, shifted + 1, shifted)
    inverse = 1 / np.square(shifted)
    direct = total + np.log(shifted) - 0.5 / shifted + _horner(_DIGAMMA, inverse) * inverse  # DLMF 5.11.2
    fraction = wide - np.rint(wide)
    reflected = direct - math.pi / np.tan(math.pi * fraction)  # DLMF 5.5.4
    result = np.where(wide < 0, np.where(fraction == 0, np.nan, reflected), direct)
    return _store(np.where(wide == 0, np.copysign(np.inf, -wide), result), x, out)
