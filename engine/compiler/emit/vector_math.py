"""Elementary functions as vector polynomials, on vectors and scalars alike.

Errors are the largest over all binades of float32 against float64, in units in the last place (ulp) of the result, on
targets with fma. The polynomials are least-squares fits reweighted until their error is level; NaN goes on everywhere.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import F32, I32, IRValue

_LOG2_E = math.log2(math.e)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts; the first has so few bits that its product with an exponent is exact."""
_ROUNDER = 1.5 * 2.0**23
"""Added to a small number it leaves the nearest integer in the low bits of the sum."""
_MANTISSA_BITS, _BIAS = 23, 127

_EXP = (0.9999997019767761, 0.4999914765357971, 0.1666763871908188, 0.04189816117286682, 0.008290272206068039)
"""(exp(r) - 1) / r for |r| <= ln 2 / 2, lowest power first; exp(r) is off by 9.2e-8 at most."""
_EXPM1 = (
    *(1.0, 0.4999999701976776, 0.16666506230831146),
    *(0.041667137295007706, 0.008369104005396366, 0.0013888872927054763),
)
"""The same with one term more, which makes exp(r) - 1 itself exact to 1.1e-8 of its value."""
_LOG = (
    *(0.3333333134651184, -0.2500081956386566, 0.20001226663589478, -0.16623356938362122),
    *(0.14201758801937103, -0.13160182535648346, 0.12761574983596802, -0.07634492963552475),
)
"""(log(1 + f) - f + f² / 2) / f³ for sqrt(1/2) <= 1 + f <= sqrt(2)."""
_TANH = (
    (
        0.9999999790315249,
        0.13379716308801232,
        0.00349403264024415,
        2.0583451026454312e-05,
        1.3319033089358056e-08,
    ),
    (1.0, 0.4671303155300836, 0.02587106583732267, 0.00032830897536805626, 7.76200287865824e-07),
)
"""Numerator and denominator in x² of tanh(x) / x for |x| <= 9.02, off by 2.1e-8."""
_ERF = (
    (
        *(1.12837914375709, 0.19154991779571268, 0.05287539688823916),
        *(3.8081455119455933e-3, 2.8468752276625714e-4, 2.025913060087311e-06),
    ),
    (
        *(1.0, 0.5030893704307599, 0.11455946350918042),
        *(0.015055057300458849, 1.1707221654582922e-3, 3.783184244354647e-05),
    ),
)
"""Numerator and denominator in x² of erf(x) / x for |x| <= 3.95, off by 2.1e-8."""

_PI = (3.141592502593994, 1.5099578831723193e-07, 1.0780605716316238e-14)
"""pi in three parts; the first two have so few bits that their products with multiples are exact in float64."""
_DOUBLE_ROUNDER = 1.5 * 2.0**52
"""As `_ROUNDER`, in float64."""
_SIN = tuple((-1) ** power / math.factorial(2 * power + 1) for power in range(1, 7))
"""(sin(r) - r) / r³ in r² for |r| <= pi / 2: Taylor's series, off by 7e-10."""

_EASY_POWERS = (0.5, 1, 2, 3, 4, 5, 6, 7, 8)


def polynomial(e: Emitter, x: IRValue, coefficients: Sequence[float]) -> IRValue:
    """Return the polynomial of x, coefficients given lowest power first."""
    total = e.like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = e.fma(total, x, e.like(x, coefficient))
    return total


def bounded(e: Emitter, x: IRValue, low: float, high: float) -> IRValue:
    """Return x drawn into [low, high]; NaN stays."""
    return e.fmin(e.like(x, high), e.fmax(e.like(x, low), x))


def exp(e: Emitter, x: IRValue) -> IRValue:
    """e^x with gradual underflow; off by 0.9 ulp."""
    x = bounded(e, x, -104.0, 89.0)
    rest, exponent = _reduced(e, x)
    power = e.fma(polynomial(e, rest, _EXPM1), rest, e.like(x, 1.0))
    # below, 0 is multiplied: products that underflow take processors a hundred cycles
    power = e.select(e.builder.fcmp_unordered(">", x, e.like(x, -104.0)), power, e.like(x, 0.0))
    # 2^128 and 2^-149 are no normal numbers, their roots are
    half = e.builder.ashr(exponent, _integers(e, x, 1))
    other = e.builder.sub(exponent, half)
    return e.fmul(e.fmul(power, _power_of_two(e, half)), _power_of_two(e, other))


def exp_below_zero(e: Emitter, x: IRValue) -> IRValue:
    """e^x for x <= 0 in as few instructions as there can be; off by 2 ulp, and 0 below -87.69."""
    # where the rounded exponent is -127, the bits of the power of two are those of 0; NaN on the right goes on
    x = e.fmax(e.like(x, -88.0), x)
    power, scale = _power_parts(e, x, 1, _BIAS)
    return e.fmul(power, scale)


def expm1(e: Emitter, x: IRValue) -> IRValue:
    """e^x - 1, exact near 0 too; off by 2 ulp. Beyond x = 88 infinity."""
    x = bounded(e, x, -80.0, 89.0)
    rest, exponent = _reduced(e, x)
    # both parts of 2^n (1 + p) - 1 are halved so that n = 128 is in range
    half = _power_of_two(e, e.builder.sub(exponent, _integers(e, x, 1)))
    part = e.fmul(polynomial(e, rest, _EXPM1), rest)
    result = e.fma(half, part, e.fsub(half, e.like(x, 0.5)))
    return e.fadd(result, result)


def exp_plus_one(e: Emitter, x: IRValue, sign: int = 1) -> IRValue:
    """1 + e^(sign · x), the denominator of sigmoid and similar functions, in the fewest instructions.

    Infinite where e^(sign · x) is beyond float32; 1 where it is below 1e-37.
    """
    x = bounded(e, x, *((-86.5, 89.0) if sign > 0 else (-89.0, 86.5)))
    power, scale = _power_parts(e, x, sign, _BIAS - 1)
    return e.fma(power, scale, e.like(x, 1.0))


def log(e: Emitter, x: IRValue) -> IRValue:
    """Natural logarithm; off by 1 ulp. -inf of 0, NaN below."""
    tiny = e.builder.fcmp_ordered("<", x, e.like(x, 2.0**-126))
    scaled = e.select(tiny, e.fmul(x, e.like(x, 2.0**23)), x)
    bits = _as_integer(e, scaled)
    # the exponent that leaves a mantissa between sqrt(1/2) and sqrt(2)
    root = _integers(e, x, int(np.float32(math.sqrt(0.5)).view(np.int32)))
    shift = _integers(e, x, _MANTISSA_BITS)
    exponent = e.builder.ashr(e.builder.sub(bits, root), shift)
    f = e.fsub(_as_float(e, e.builder.sub(bits, e.builder.shl(exponent, shift))), e.like(x, 1.0))
    count = e.builder.sitofp(exponent, x.type)
    count = e.fsub(count, e.select(tiny, e.like(x, 23.0), e.like(x, 0.0)))
    square = e.fmul(f, f)
    rest = e.fmul(e.fmul(square, f), polynomial(e, f, _LOG))
    rest = e.fma(square, e.like(x, -0.5), e.fma(count, e.like(x, _LN2_LOW), rest))
    result = e.fma(count, e.like(x, _LN2_HIGH), e.fadd(f, rest))
    return _log_of_specials(e, x, result)


def log1p(e: Emitter, x: IRValue) -> IRValue:
    """log(1 + x), exact near 0 too; off by 2 ulp for x > -0.5."""
    one = e.like(x, 1.0)
    rounded = e.fadd(one, x)
    lost = e.fsub(x, e.fsub(rounded, one))
    result = e.fadd(log(e, rounded), e.fdiv(lost, rounded))
    # infinity has lost NaN
    return e.select(e.builder.fcmp_ordered("<", x, e.like(x, 1e30)), result, log(e, x))


def tanh(e: Emitter, x: IRValue) -> IRValue:
    """Hyperbolic tangent; off by 4 ulp."""
    return _odd_fraction(e, x, 9.02, _TANH)


def erf(e: Emitter, x: IRValue) -> IRValue:
    """Error function; off by 4 ulp."""
    return _odd_fraction(e, x, 3.95, _ERF)


def sqrt(e: Emitter, x: IRValue) -> IRValue:
    """Square root, correctly rounded."""
    return e.call("llvm.sqrt", x)


def reciprocal(e: Emitter, x: IRValue) -> IRValue:
    """1 / x, correctly rounded."""
    return e.fdiv(e.like(x, 1.0), x)


def rsqrt(e: Emitter, x: IRValue) -> IRValue:
    """1 / sqrt(x); off by 1.5 ulp."""
    return reciprocal(e, sqrt(e, x))


def power(e: Emitter, x: IRValue, exponent: IRValue) -> IRValue:
    """x^exponent: products for small whole exponents and a root for 0.5, otherwise the C library's, lane by lane.

    The products are off by 1 ulp for each of their factors.
    """
    number = known_number(exponent)
    if number is None or abs(number) not in _EASY_POWERS:
        return e.call("llvm.pow", x, exponent)
    # the sum makes -0, whose root is -0, 0
    result = (
        sqrt(e, e.fadd(x, e.like(x, 0.0))) if abs(number) == 0.5 else _whole_power(e, x, int(abs(number)))
    )
    return reciprocal(e, result) if number < 0 else result


def minimum(e: Emitter, left: IRValue, right: IRValue) -> IRValue:
    """The lesser; NaN where either is."""
    return _extreme(e, e.fmin, left, right)


def maximum(e: Emitter, left: IRValue, right: IRValue) -> IRValue:
    """The greater; NaN where either is."""
    return _extreme(e, e.fmax, left, right)


def known_number(value: IRValue) -> float | None:
    """Return the number that a value is, in all lanes, if that is known as the kernel is written."""
    if not isinstance(value, ir.Constant):
        return None
    lanes = [lane.constant for lane in value.constant] if value.type != F32 else [value.constant]
    return float(lanes[0]) if len(set(lanes)) == 1 else None


def _intrinsic(name: str) -> Callable[[Emitter, IRValue], IRValue]:
    return lambda e, x: e.call(f"llvm.{name}", x)


def sin(e: Emitter, x: IRValue) -> IRValue:
    """Return the sine; of |x| above 2^28, where neighbours are 16 apart, it is some number from -1 to 1."""
    return _wave(e, x, 0.0)


def cos(e: Emitter, x: IRValue) -> IRValue:
    """Return the cosine, with the limits of the sine."""
    return _wave(e, x, 0.5)


def _wave(e: Emitter, x: IRValue, phase: float) -> IRValue:
    """Return sin(x + phase · pi): the sine of what multiples of pi leave, with the other sign where these are odd."""
    kind = ir.DoubleType() if x.type == F32 else ir.VectorType(ir.DoubleType(), e.lanes)

    def number(value: float) -> IRValue:
        return ir.Constant(kind, value if x.type == F32 else [value] * e.lanes)

    def nearest(value: IRValue) -> IRValue:
        return e.builder.fsub(e.builder.fadd(value, number(_DOUBLE_ROUNDER)), number(_DOUBLE_ROUNDER))

    wide = e.builder.fpext(x, kind)
    count = nearest(e.builder.fadd(e.builder.fmul(wide, number(1 / math.pi)), number(phase)))
    periods = e.builder.fsub(count, number(phase))
    for part in _PI:
        wide = e.builder.fsub(wide, e.builder.fmul(periods, number(part)))
    half = e.builder.fmul(count, number(0.5))
    is_odd = e.builder.fcmp_unordered("!=", half, nearest(half))
    rest = bounded(e, e.builder.fptrunc(wide, x.type), -math.pi / 2, math.pi / 2)
    square = e.fmul(rest, rest)
    series = e.like(x, _SIN[-1])
    for coefficient in reversed(_SIN[:-1]):
        series = e.fma(series, square, e.like(x, coefficient))
    value = e.fma(e.fmul(rest, square), series, rest)
    return e.select(is_odd, e.builder.fneg(value), value)


def _comparison(how: str) -> Callable[..., IRValue]:
    """Return what writes 1 where a comparison holds, else 0; NaN differs from everything."""

    def write(e: Emitter, left: IRValue, right: IRValue) -> IRValue:
        compare = e.builder.fcmp_unordered if how == "!=" else e.builder.fcmp_ordered
        return e.select(compare(how, left, right), e.like(left, 1.0), e.like(left, 0.0))

    return write


def where(e: Emitter, condition: IRValue, yes: IRValue, no: IRValue) -> IRValue:
    """Return one number where another is not 0, and a third where it is."""
    return e.select(e.builder.fcmp_unordered("!=", condition, e.like(condition, 0.0)), yes, no)


FUNCTIONS: dict[str, Callable[..., IRValue]] = {
    "abs": _intrinsic("fabs"),
    "ceil": _intrinsic("ceil"),
    "cos": cos,
    "eq": _comparison("=="),
    "erf": erf,
    "exp": exp,
    "expm1": expm1,
    "floor": _intrinsic("floor"),
    "ge": _comparison(">="),
    "gt": _comparison(">"),
    "le": _comparison("<="),
    "log": log,
    "log1p": log1p,
    "lt": _comparison("<"),
    "maximum": maximum,
    "minimum": minimum,
    "ne": _comparison("!="),
    "neg": lambda e, x: e.builder.fneg(x),
    "pow": power,
    "reciprocal": reciprocal,
    "round": _intrinsic("roundeven"),
    "rsqrt": rsqrt,
    "sin": sin,
    "sqrt": sqrt,
    "square": lambda e, x: e.fmul(x, x),
    "tanh": tanh,
    "trunc": _intrinsic("trunc"),
    "where": where,
}
"""PyTorch's name -> what writes the function."""


def _reduced(e: Emitter, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return x - n ln 2 and the integer n that makes it least."""
    shifted = e.fma(x, e.like(x, _LOG2_E), e.like(x, _ROUNDER))
    count = e.fsub(shifted, e.like(x, _ROUNDER))
    rest = e.fma(count, e.like(x, -_LN2_HIGH), x)
    rest = e.fma(count, e.like(x, -_LN2_LOW), rest)
    bits = _integers(e, x, int(np.float32(_ROUNDER).view(np.int32)))
    return rest, e.builder.sub(_as_integer(e, shifted), bits)


def _power_parts(e: Emitter, x: IRValue, sign: int, bias: int) -> tuple[IRValue, IRValue]:
    """Return two factors of e^(sign · x): a power of two, last, and the rest, both normal numbers or 0.

    Args:
        e: the kernel.
        x: exponent.
        sign: 1 or -1.
        bias: what makes an exponent the bits of a power of two; the less it is, the greater the other factor.
    """
    # the sum's low bits hold the biased exponent; shifted they are the power of two
    rounder = _ROUNDER + bias
    shifted = e.fma(x, e.like(x, sign * _LOG2_E), e.like(x, rounder))
    count = e.fsub(shifted, e.like(x, rounder))
    rest = e.fma(count, e.like(x, -sign * _LN2_HIGH), x)
    rest = e.fma(count, e.like(x, -sign * _LN2_LOW), rest)
    whole = 2.0 ** (_BIAS - bias)
    terms = [whole * sign ** (power + 1) * term for power, term in enumerate(_EXP)]
    power = e.fma(polynomial(e, rest, terms), rest, e.like(x, whole))
    return power, _as_float(e, e.builder.shl(_as_integer(e, shifted), _integers(e, x, _MANTISSA_BITS)))


def _power_of_two(e: Emitter, exponent: IRValue) -> IRValue:
    """Return 2^exponent for -126 <= exponent <= 127, by writing the bits of that number."""
    width, bias = (ir.Constant(I32, number) for number in (_MANTISSA_BITS, _BIAS))
    if exponent.type != I32:
        width, bias = (ir.Constant(exponent.type, [number] * e.lanes) for number in (width, bias))
    return _as_float(e, e.builder.shl(e.builder.add(exponent, bias), width))


def _odd_fraction(
    e: Emitter, x: IRValue, bound: float, terms: tuple[Sequence[float], Sequence[float]]
) -> IRValue:
    """Return x · P(x²) / Q(x²); beyond the bound the function is 1."""
    x = bounded(e, x, -bound, bound)
    square = e.fmul(x, x)
    numerator, denominator = (polynomial(e, square, part) for part in terms)
    return bounded(e, e.fdiv(e.fmul(x, numerator), denominator), -1.0, 1.0)


def _log_of_specials(e: Emitter, x: IRValue, result: IRValue) -> IRValue:
    zero, infinity = e.like(x, 0.0), e.like(x, math.inf)
    ordered = e.builder.fcmp_ordered
    result = e.select(ordered("<", x, infinity), result, x)
    result = e.select(ordered("<", x, zero), e.like(x, math.nan), result)
    return e.select(ordered("==", x, zero), e.like(x, -math.inf), result)


def _whole_power(e: Emitter, x: IRValue, exponent: int) -> IRValue:
    """Return x^exponent, 1 at least, by squaring."""
    root = _whole_power(e, x, exponent // 2) if exponent > 1 else x
    if exponent == 1:
        return x
    square = e.fmul(root, root)
    return e.fmul(square, x) if exponent % 2 else square


def _extreme(
    e: Emitter, choose: Callable[[IRValue, IRValue], IRValue], left: IRValue, right: IRValue
) -> IRValue:
    """Return the lesser or greater of two values: `choose` lets through only a NaN on its right."""
    if known_number(left) is not None:
        return choose(left, right)
    if known_number(right) is not None:
        return choose(right, left)
    return e.select(e.builder.fcmp_unordered("uno", left, left), left, choose(left, right))


def _integers(e: Emitter, x: IRValue, number: int) -> IRValue:
    """Return an integer in the form of x: one in each lane of a vector, or one."""
    constant = ir.Constant(I32, number)
    return constant if x.type == F32 else ir.Constant(ir.VectorType(I32, e.lanes), [constant] * e.lanes)


def _as_integer(e: Emitter, x: IRValue) -> IRValue:
    return e.builder.bitcast(x, I32 if x.type == F32 else ir.VectorType(I32, e.lanes))


def _as_float(e: Emitter, bits: IRValue) -> IRValue:
    return e.builder.bitcast(bits, F32 if bits.type == I32 else e.vector_type)
