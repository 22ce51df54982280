"""Pairs of bfloat16: how float32 becomes them, and their products, by the processor's instructions or without.

A *pair* is a word of 32 bits: two bfloat16 side by side, the first in the lower half, as `vdpbf16ps` and AMX take them.
Vectors of pairs have the type of float32 vectors of as many lanes, so that they are loaded, stored and broadcast alike.
`engine/kernels/bfloat16.py` does the same in numpy, and documents the rounding.
"""

from collections.abc import Sequence

from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import BF16, I16, I32, IRValue
from engine.compiler.emit.vector_math import maximum
from engine.kernels.bfloat16 import LARGEST

_MAGNITUDE, _INFINITE, _MAX_BITS = 0x7FFFFFFF, 0x7F800000, 0x7F7F
_LESSER_MAGNITUDE = 0b0010
"""Of VRANGEPS: the one with the lesser magnitude, with the sign of the first."""
_KEEP, _QUIET, _MINUS_INFINITY, _INFINITY = 0, 2, 4, 5
"""Responses of VFIXUPIMMPS: the destination, a quiet NaN of the source, infinities."""
_FIXUPS = (_QUIET, _QUIET, _KEEP, _KEEP, _MINUS_INFINITY, _INFINITY, _KEEP, _KEEP)
"""To its eight kinds of numbers: quiet and signalling NaN, zero, one, both infinities, negative and positive."""


def pair_up(e: Emitter, first: IRValue, second: IRValue) -> IRValue:
    """Return the pairs of two vectors of float32 that lie one after the other, rounded to bfloat16."""
    lanes = e.lanes
    if e.target.has_bf16:
        wide = ir.VectorType(BF16, 2 * lanes)
        name = f"llvm.x86.avx512bf16.cvtne2ps2bf16.{32 * lanes}"
        function = e.intrinsic(name, wide, [e.vector_type] * 2)
        pairs = e.builder.call(function, [_within_range(e, second), _within_range(e, first)])
        return e.builder.bitcast(pairs, e.vector_type)
    halves = [_upper_half(e, vector) for vector in (first, second)]
    order = ir.Constant(ir.VectorType(I32, 2 * lanes), [ir.Constant(I32, lane) for lane in range(2 * lanes)])
    return e.builder.bitcast(e.builder.shuffle_vector(*halves, order), e.vector_type)


def pair_lanes(e: Emitter, first: IRValue, second: IRValue) -> IRValue:
    """Return the pairs of two vectors of float32 lane by lane, rounded to bfloat16: first[0], second[0] …."""
    kind = ir.VectorType(I32, e.lanes)
    low, high = (e.builder.zext(_upper_half(e, vector), kind) for vector in (first, second))
    return e.builder.bitcast(e.builder.or_(low, e.builder.shl(high, _splat(kind, 16))), e.vector_type)


def dot(e: Emitter, left: IRValue, right: IRValue, addend: IRValue) -> IRValue:
    """Return addend + left[0] * right[0] + left[1] * right[1] of pairs, lane by lane, in float32."""
    if e.target.has_bf16:
        wide = ir.VectorType(BF16, 2 * e.lanes)
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * e.lanes}"
        function = e.intrinsic(name, e.vector_type, [e.vector_type, wide, wide])
        pairs = [e.builder.bitcast(value, wide) for value in (left, right)]
        return e.builder.call(function, [addend, *pairs])
    (left_low, left_high), (right_low, right_high) = apart(e, left), apart(e, right)
    return e.fma(left_high, right_high, e.fma(left_low, right_low, addend))


def apart(e: Emitter, pairs: IRValue) -> tuple[IRValue, IRValue]:
    """Return the first and the second numbers of pairs as float32."""
    kind = ir.VectorType(I32, e.lanes)
    bits = e.builder.bitcast(pairs, kind)
    low = e.builder.shl(bits, _splat(kind, 16))
    high = e.builder.and_(bits, _splat(kind, 0xFFFF0000))
    return e.builder.bitcast(low, e.vector_type), e.builder.bitcast(high, e.vector_type)


def joined(e: Emitter, first: IRValue, second: IRValue) -> IRValue:
    """Return the pairs of numbers that are bfloat16 already, lane by lane: what `apart` takes apart."""
    kind = ir.VectorType(I32, e.lanes)
    low, high = (e.builder.bitcast(value, kind) for value in (first, second))
    pairs = e.builder.or_(
        e.builder.lshr(low, _splat(kind, 16)), e.builder.and_(high, _splat(kind, 0xFFFF0000))
    )
    return e.builder.bitcast(pairs, e.vector_type)


def _within_range(e: Emitter, vector: IRValue) -> IRValue:
    """Return a vector whose finite numbers are no larger than the largest bfloat16."""
    lanes = e.lanes
    mask = ir.IntType(lanes)
    everywhere, mode = ir.Constant(mask, 2**lanes - 1), ir.Constant(I32, 4)  # 4: rounding as it is set
    floats, words = e.vector_type, ir.VectorType(I32, lanes)
    limit = e.intrinsic(
        f"llvm.x86.avx512.mask.range.ps.{32 * lanes}", floats, [floats, floats, I32, floats, mask, I32]
    )
    kind = ir.Constant(I32, _LESSER_MAGNITUDE)
    limited = e.builder.call(limit, [vector, e.splat(LARGEST), kind, vector, everywhere, mode])
    table = sum(fixup << 4 * place for place, fixup in enumerate(_FIXUPS))
    repair = e.intrinsic(
        f"llvm.x86.avx512.mask.fixupimm.ps.{32 * lanes}", floats, [floats, floats, words, I32, mask, I32]
    )
    return e.builder.call(
        repair, [limited, vector, _splat(words, table), ir.Constant(I32, 0), everywhere, mode]
    )


def _upper_half(e: Emitter, vector: IRValue) -> IRValue:
    """Return the bits of a vector rounded to bfloat16, as i16."""
    b, kind = e.builder, ir.VectorType(I32, e.lanes)
    if e.target.has_bf16:
        half = ir.VectorType(BF16, e.lanes)
        function = e.intrinsic(f"llvm.x86.avx512bf16.cvtneps2bf16.{32 * e.lanes}", half, [e.vector_type])
        return b.bitcast(b.call(function, [_within_range(e, vector)]), ir.VectorType(I16, e.lanes))
    bits = b.bitcast(vector, kind)
    sixteen = _splat(kind, 16)
    high = b.lshr(bits, sixteen)
    sign = b.and_(high, _splat(kind, 0x8000))
    magnitude = b.and_(bits, _splat(kind, _MAGNITUDE))
    odd = b.and_(high, _splat(kind, 1))
    near = b.lshr(b.add(b.add(magnitude, _splat(kind, 0x7FFF)), odd), sixteen)
    most = _splat(kind, _MAX_BITS)
    near = b.or_(sign, b.select(b.icmp_unsigned("<", near, most), near, most))
    is_finite = b.icmp_unsigned("<", magnitude, _splat(kind, _INFINITE))
    is_nan = b.icmp_unsigned(">", magnitude, _splat(kind, _INFINITE))
    other = b.select(is_nan, b.or_(high, _splat(kind, 0x40)), high)
    return b.trunc(b.select(is_finite, near, other), ir.VectorType(I16, e.lanes))


def _splat(kind: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(kind, [ir.Constant(I32, value)] * kind.count)


def largest_pairs(e: Emitter, values: Sequence[IRValue]) -> IRValue:
    """Return the larger numbers of vectors of pairs, each half separately; NaN goes on."""
    first, second = apart(e, values[0])
    for value in values[1:]:
        low, high = apart(e, value)
        first, second = maximum(e, first, low), maximum(e, second, high)
    return joined(e, first, second)
