"""The integral of the normal distribution's density, by polynomials that are looked up in registers.

A vector of 16 lanes is a table of 16 numbers, of which another vector's lanes choose theirs in one instruction (VPERMPS
of AVX-512). That takes fewer instructions than one fraction for all arguments, and no division.
"""

from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import I32, IRValue

LANES = 16
"""Lanes of the vectors that this is for."""
_LARGEST = 5.5
"""Argument from which on the integral is 1/2 in float32."""
_ROUNDER = 1.5 * 2.0**22
"""Added to a small number it leaves the nearest multiple of 1/2; the low bits of the sum are its number of halves."""
_TERMS = (
    (
        *(0.0, 0.191462442278862, 0.3413447439670563, 0.43319278955459595),
        *(0.4772498905658722, 0.49379032850265503, 0.49865010380744934, 0.49976736307144165),
        *(0.4999683201313019, 0.4999966025352478, 0.4999997019767761, 0.5),
    ),
    (
        *(0.3989422619342804, 0.3520653247833252, 0.24197076261043549, 0.12951761484146118),
        *(0.053990960121154785, 0.017528288066387177, 0.004431844688951969, 0.0008726836531423032),
        *(0.00013383138866629452, 1.598418748471886e-05, 1.4868207927065669e-06, 0.0),
    ),
    (
        *(1.2383625289658085e-06, -0.08800966292619705, -0.12098096311092377, -0.09713959693908691),
        *(-0.05399390682578087, -0.021911507472395897, -0.006647540256381035, -0.0015268003335222602),
        *(-0.0002674783463589847, -3.5913926694775e-05, -3.7077561501064338e-06, 0.0),
    ),
    (
        *(-0.06651153415441513, -0.04400666058063507, -3.512096100166673e-06, 0.02698027528822422),
        *(0.026996009051799774, 0.015338471159338951, 0.005909523461014032, 0.0016361840534955263),
        *(0.0003344576107338071, 5.123598384670913e-05, 5.9366366258473136e-06, 0.0),
    ),
    (
        *(0.00015002481814008206, 0.019884927198290825, 0.01997610181570053, 0.006131455302238464),
        *(-0.0043735201470553875, -0.005885759834200144, -0.0033339504152536392, -0.0011940684635192156),
        *(-0.0002977281983476132, -5.3802465117769316e-05, -7.197922968771309e-06, 0.0),
    ),
    (
        *(0.00956498458981514, 0.004543544724583626, -0.003937833942472935, -0.005799497477710247),
        *(-0.002263944363221526, 0.0006338056409731507, 0.0010973718017339706, 0.0005812154849991202),
        *(0.00018496754637453705, 4.005084701930173e-05, 6.196911272127181e-06, 0.0),
    ),
)
"""Terms of the polynomials, lowest power first; each around 0, 1/2, 1 … up to 5.5: 1/2 from there on.

Least-squares fits reweighted until their error is level.
"""


def half_integral(e: Emitter, magnitude: IRValue) -> IRValue:
    """Return the integral of the density from 0 to a vector of numbers from 0 on; off by 8e-8.

    NaN gives any number.
    """
    near = e.fmin(magnitude, e.splat(_LARGEST))
    shifted = e.fadd(near, e.splat(_ROUNDER))
    rest = e.fsub(near, e.fsub(shifted, e.splat(_ROUNDER)))
    place = e.builder.bitcast(shifted, ir.VectorType(I32, LANES))
    total = _chosen(e, _TERMS[-1], place)
    for terms in reversed(_TERMS[:-1]):
        total = e.fma(total, rest, _chosen(e, terms, place))
    return total


def _chosen(e: Emitter, numbers: tuple[float, ...], place: IRValue) -> IRValue:
    """Return for each lane the number at its place, of which the four lowest bits count."""
    table = e.constant([*numbers, *(0.0,) * (LANES - len(numbers))])
    function = e.intrinsic("llvm.x86.avx512.permvar.sf.512", e.vector_type, [e.vector_type, place.type])
    return e.builder.call(function, [table, place])
