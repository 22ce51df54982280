"""Vectors of 8-bit integers, four to a 32-bit word: loads and stores, products and dequantization.

A word holds four neighbouring channels, the first in its lowest byte. Offsets count words, as all elements do.
"""

from collections.abc import Sequence
from functools import partial

from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import I8, I32, IRIndex, IRValue
from engine.quantization.tensor_scale import LARGEST, TensorScale
from engine.quantization.weights import LARGEST_MAGNITUDE

WORD_CHANNELS = 4
"""Channels of a word."""
ZERO = 128
"""The zero point of per-row scales."""
MAX_TAPS = 2**24 // (LARGEST * LARGEST_MAGNITUDE)
"""Products of integers whose sum is exact in float32."""
_I16 = ir.IntType(16)
_ROUNDING = 12582912.0
"""1.5 * 2**23: a smaller number that is added to it is rounded to a whole one, half to even."""
_ROUNDING_BITS = 0x4B400000
"""That number's bits; those of its sum with a whole number lie as far from them as the number is from 0."""


def words(channels: int) -> int:
    """Return how many words hold so many channels."""
    return -(-channels // WORD_CHANNELS)


def i32_vector(e: Emitter) -> ir.VectorType:
    """Return the type of a vector of 32-bit integers."""
    return ir.VectorType(I32, e.lanes)


def splat(e: Emitter, value: int) -> IRValue:
    """Return a vector that holds a 32-bit integer in all lanes."""
    return ir.Constant(i32_vector(e), [ir.Constant(I32, value)] * e.lanes)


def word_of(value: int) -> int:
    """Return the word, as a signed integer, whose four bytes are one integer of 0 to 255."""
    return int.from_bytes([value] * WORD_CHANNELS, "little", signed=True)


def load_steps(e: Emitter, base: IRValue, *offset: IRIndex, count: int | None = None) -> IRValue:
    """Load a vector of integers of 0 to 255, of `count` of them whole words where it is given, as float32."""
    whole = e.lanes // WORD_CHANNELS
    used = whole if count is None else words(count)
    value = e.load_words(base, *offset, count=used)
    if used < whole:
        lanes = ir.Constant(ir.VectorType(I32, whole), [ir.Constant(I32, min(n, used)) for n in range(whole)])
        value = e.builder.shuffle_vector(value, ir.Constant(value.type, [ir.Constant(I32, 0)] * used), lanes)
    integers = e.builder.bitcast(value, ir.VectorType(I8, e.lanes))
    return e.builder.uitofp(e.builder.zext(integers, i32_vector(e)), e.vector_type)


def real(e: Emitter, steps: IRValue, scale: TensorScale) -> IRValue:
    """Dequantize integers that are given as float32."""
    centred = e.fsub(steps, e.splat(float(scale.zero_point))) if scale.zero_point else steps
    return e.fmul(centred, e.splat(scale.scale))


def integers_of(e: Emitter, number: IRValue, scale: TensorScale) -> IRValue:
    """Quantize float32 numbers to 0 to 255, as 32-bit integers: `TensorScale.integers`."""
    if scale.rounds_sum:
        least = float(scale.lowest)
        summed = e.fma(number, e.splat(scale.inverse), e.splat(scale.zero_point + least))
        bounded = e.fmax(e.fmin(summed, e.splat(least + LARGEST)), e.splat(least))
        return _rounded(e, bounded, -scale.lowest)
    scaled = e.fmul(number, e.splat(scale.inverse))
    # where the number is NaN, the limit is taken
    bounded = e.fmax(scaled, e.splat(-float(scale.zero_point)))
    bounded = e.fmin(bounded, e.splat(float(LARGEST - scale.zero_point)))
    return _rounded(e, bounded, scale.zero_point)


def symmetric_integers(e: Emitter, scaled: IRValue, levels: int) -> IRValue:
    """Return numbers as 32-bit integers, rounded half to even, within so many steps of `ZERO`; NaN as `ZERO`."""
    is_number = e.builder.fcmp_ordered("ord", scaled, scaled)
    bounded = e.fmax(e.select(is_number, scaled, e.splat(0.0)), e.splat(-float(levels)))
    return _rounded(e, e.fmin(bounded, e.splat(float(levels))), ZERO)


def _rounded(e: Emitter, number: IRValue, zero: int) -> IRValue:
    """Return small numbers as 32-bit integers, rounded half to even, with the zero point added."""
    bits = e.builder.bitcast(e.fadd(number, e.splat(_ROUNDING)), i32_vector(e))
    return e.builder.sub(bits, splat(e, _ROUNDING_BITS - zero))


def store_bytes(
    e: Emitter, integers: IRValue, base: IRValue, *offset: IRIndex, count: int | None = None
) -> None:
    """Store 32-bit integers of 0 to 255 as bytes; of `count` of them whole words where it is given."""
    whole = e.lanes // WORD_CHANNELS
    packed = e.builder.bitcast(
        e.builder.trunc(integers, ir.VectorType(I8, e.lanes)), ir.VectorType(I32, whole)
    )
    used = whole if count is None else words(count)
    if used < whole:
        lanes = ir.Constant(ir.VectorType(I32, used), [ir.Constant(I32, place) for place in range(used)])
        packed = e.builder.shuffle_vector(packed, ir.Constant(packed.type, ir.Undefined), lanes)
    e.store_words(packed, base, *offset)


def joined_bytes(e: Emitter, parts: Sequence[IRValue]) -> IRValue:
    """Return the words, as float32 lanes, whose bytes are 32-bit integers of 0 to 255, the first lowest."""
    joined = parts[0]
    for place, part in enumerate(parts[1:], 1):
        joined = e.builder.or_(joined, e.builder.shl(part, splat(e, 8 * place)))
    return e.builder.bitcast(joined, e.vector_type)


def largest_bytes(e: Emitter, vectors: Sequence[IRValue]) -> IRValue:
    """Return the largest of integers of 0 to 255, byte by byte, of words as float32 lanes."""
    kind = ir.VectorType(I8, e.lanes * WORD_CHANNELS)
    function = e.intrinsic(f"llvm.umax.v{kind.count}i8", kind, [kind] * 2)
    largest, *others = (e.builder.bitcast(vector, kind) for vector in vectors)
    for other in others:
        largest = e.builder.call(function, [largest, other])
    return e.builder.bitcast(largest, e.vector_type)


def load_weights(e: Emitter, base: IRValue, offset: int) -> Sequence[IRValue]:
    """Load a vector of words of weights, in the form that `add_products` takes it in."""
    word = e.load_words(base, offset, count=e.lanes)
    if _dot_intrinsic(e) is not None:
        return (word,)
    if e.target.name == "neon":
        return tuple(_signed_byte(e, word, place) for place in range(WORD_CHANNELS))
    eights = ir.Constant(_halves(e), [ir.Constant(_I16, 8)] * (2 * e.lanes))
    pairs = e.builder.bitcast(word, _halves(e))
    return e.builder.ashr(e.builder.shl(pairs, eights), eights), e.builder.ashr(pairs, eights)


def broadcast_word(e: Emitter, base: IRValue, offset: IRIndex) -> Sequence[IRValue]:
    """Load a word of the input into all lanes, in the form that `add_products` takes it in."""
    scalar = e.builder.bitcast(e.load_scalar(base, offset), I32)
    undefined = ir.Constant(i32_vector(e), ir.Undefined)
    first = e.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    word = e.builder.shuffle_vector(first, undefined, splat(e, 0))
    if _dot_intrinsic(e) is not None:
        return (word,)
    if e.target.name == "neon":
        return tuple(
            e.builder.and_(e.builder.lshr(word, splat(e, 8 * place)), splat(e, LARGEST))
            for place in range(WORD_CHANNELS)
        )
    low = splat(e, 0x00FF00FF)
    odd = e.builder.and_(e.builder.lshr(word, splat(e, 8)), low)
    return tuple(e.builder.bitcast(half, _halves(e)) for half in (e.builder.and_(word, low), odd))


def add_products(e: Emitter, number: Sequence[IRValue], weight: Sequence[IRValue], total: IRValue) -> IRValue:
    """Return 32-bit sums with four products each, of integers of 0 to 255 and of -128 to 127, added: exact.

    Where the processor has such an instruction (VNNI) it is one; else bytes become 16 bits, products of pairs are added
    in 32, or four products one by one.
    """
    intrinsic = _dot_intrinsic(e)
    if intrinsic is not None:
        kind = i32_vector(e)
        function = e.intrinsic(intrinsic, kind, [kind] * 3)
        return e.builder.call(function, [total, *number, *weight])
    multiply = e.builder.mul if e.target.name == "neon" else partial(_pair_products, e)
    for one, other in zip(number, weight, strict=True):
        total = e.builder.add(total, multiply(one, other))
    return total


def _dot_intrinsic(e: Emitter) -> str | None:
    """Return the instruction that multiplies and adds four bytes, None where the target has none."""
    features = e.target.features.split(",")
    if e.lanes == 16 and "+avx512vnni" in features:
        return "llvm.x86.avx512.vpdpbusd.512"
    if e.lanes == 8 and "+avxvnni" in features:
        return "llvm.x86.avx512.vpdpbusd.256"
    return None


def _pair_products(e: Emitter, left: IRValue, right: IRValue) -> IRValue:
    """Return sums of two products of 16-bit integers each."""
    name = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[e.lanes]
    function = e.intrinsic(f"llvm.x86.{name}", i32_vector(e), [_halves(e)] * 2)
    return e.builder.call(function, [left, right])


def _halves(e: Emitter) -> ir.VectorType:
    return ir.VectorType(_I16, 2 * e.lanes)


def _signed_byte(e: Emitter, word: IRValue, place: int) -> IRValue:
    """Return a byte of words as a signed integer."""
    left = 8 * (WORD_CHANNELS - 1 - place)
    return e.builder.ashr(e.builder.shl(word, splat(e, left)), splat(e, 24))
