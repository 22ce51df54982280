"""Runs kernels for processors other than this one: their own instructions become functions of plain LLVM IR.

Kernels are written as for the processor itself. Before LLVM compiles one, each call of an instruction that only the
processor has is renamed to a function that does the same, bit for bit, as Intel's manual (Software Developer's Manual,
volume 2) describes it; so the module runs on any machine. What raises an exception on the processor, a tile that was
not configured for instance, ends the process here as well. NEON's kernels are plain IR, and are compiled as they are.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial, reduce
from typing import Any
from unittest.mock import patch

from llvmlite import ir

from engine.compiler.emit import object_file
from engine.compiler.emit.target import Target, bf16_targets, int8_targets, supported_targets, target_named
from engine.compiler.emit.types import F32, I8, I16, I32, I64, POINTER, IRValue
from engine.compiler.kernels.bf16_rate import bf16_speedup

HOST = supported_targets()[0]
"""What emulated kernels are compiled for."""
_REAL = frozenset((*supported_targets(), *bf16_targets(), *int8_targets()))


def _named(*names: str) -> list[Target]:
    """Return targets by name, those that this machine has first."""
    return sorted(map(target_named, names), key=lambda target: target not in _REAL)


WIDTHS = list(dict.fromkeys((*supported_targets(), *_named("avx512", "avx2", "sse", "neon"))))
"""A target for each vector width: those of this machine, widest first, then emulated ones."""
BF16 = _named("bf16", "amx")
"""Targets with instructions for bfloat16."""
INT8 = _named("vnni", "avxvnni", "amx")
"""Targets with instructions for products of bytes."""
_EMULATED = frozenset((*WIDTHS, *BF16, *INT8)) - _REAL

Write = Callable[..., IRValue]
"""Writes a function's body from its builder and arguments; returns its result."""
INSTRUCTIONS: dict[str, tuple[ir.FunctionType, Write]] = {}
"""Intrinsic of LLVM -> type of the function that emulates it, and its body. Those of tiles take the tiles' address."""
_PREFIX = "emulated."
_INTRINSIC = re.compile(r'@"?(llvm\.(?:x86|aarch64)\.[\w.]+)"?\(')
_DECLARATION = re.compile(r'^declare .*?@"?([\w.]+)"?\(.*\n?', re.MULTILINE)
_PAUSES = frozenset(("llvm.x86.sse2.pause", "llvm.aarch64.isb"))
"""What routines of the host itself use."""
_TILES = '  %"tiles" = alloca [8256 x i8], align 64\n  store <64 x i8> zeroinitializer, ptr %"tiles"\n'
"""Eight tiles of 1024 bytes behind 64 of their configuration, which is that of no tile."""
_CONFIGURATION, _TILE, _ROW = 64, 1024, 64
_ROW_BYTES, _ROW_COUNTS = 16, 48  # where the two lie in a configuration
_RESERVED = (*range(1, 16), *range(32, 48), *range(56, 64))


def is_emulated(target: Target) -> bool:
    """Return whether this machine lacks a target, so that its kernels are emulated."""
    return target in _EMULATED


@contextmanager
def emulating() -> Iterator[None]:
    """Emulate the targets that this machine lacks, wherever a kernel is compiled to be run."""
    compile_text, machine = object_file.compile_text, object_file.machine

    def compile_plain(text: str, target: Target, effort: int = 2) -> bytes:
        if is_emulated(target):
            return compile_text(plain(text), HOST, effort)
        return compile_text(text, target, effort)

    def machine_at_hand(target: Target, effort: int = 2) -> Any:
        return machine(HOST if is_emulated(target) else target, effort)

    def speedup(target: Target) -> float:
        return 2.0 if target.has_bf16 and is_emulated(target) else bf16_speedup(target)

    with (
        patch.object(object_file, "compile_text", compile_plain),
        patch.object(object_file, "machine", machine_at_hand),
        patch("engine.compiler.selection.machine.bf16_speedup", speedup),
    ):
        yield


def plain(text: str) -> str:
    """Return a kernel's module without the instructions of one processor.

    Raises:
        NotImplementedError: one of them is not emulated.
    """
    names = sorted(set(_INTRINSIC.findall(text)) - _PAUSES)
    missing = ", ".join(name for name in names if name not in INSTRUCTIONS)
    if missing:
        raise NotImplementedError(f"no emulation of {missing}; add it to {__name__}")
    declared: dict[str, str] = {}

    def without_declarations(part: str) -> str:
        return _DECLARATION.sub(lambda found: declared.setdefault(found[1], found[0]) and "", part)

    # bfloat16 is only carried from one instruction to the next, and not all machines have vectors of it
    text = without_declarations(text.replace("x bfloat>", "x i16>"))
    for name in names:
        del declared[name]
        text = _calls_of(name).sub(partial(_emulated_call, name), text)
    if any(map(_has_tiles, names)):
        text = text.replace("\nentry:\n", "\nentry:\n" + _TILES, 1)
    return "\n".join([text, *map(without_declarations, map(_function, names)), *declared.values()])


def _calls_of(name: str) -> re.Pattern[str]:
    return re.compile(rf'@"?{re.escape(name)}"?\((\)?)')


def _emulated_call(name: str, found: re.Match[str]) -> str:
    call = f'@"{_PREFIX}{name}"('
    if not _has_tiles(name):
        return call + found[1] if found[1] else call
    return f'{call}ptr %"tiles"' + (found[1] or ", ")


def _has_tiles(name: str) -> bool:
    """Return whether an instruction works on tiles."""
    return ".tile" in name or "tilecfg" in name or ".tdp" in name


@lru_cache(maxsize=64)
def _function(name: str) -> str:
    """Return the function that emulates an instruction, and the declarations of what it calls."""
    kind, write = INSTRUCTIONS[name]
    module = ir.Module()
    function = ir.Function(module, kind, _PREFIX + name)
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))
    result = write(b, *function.args)
    if kind.return_type == ir.VoidType():
        b.ret_void()
    else:
        b.ret(result)
    return "\n".join(map(str, module.globals.values()))


def instruction(name: str, result: ir.Type, *operands: ir.Type) -> Callable[[Write], Write]:
    """Register the body of the function that emulates an instruction."""

    def register(write: Write) -> Write:
        before = [POINTER] if _has_tiles(name) else []
        INSTRUCTIONS[name] = ir.FunctionType(result, [*before, *operands]), write
        return write

    return register


# what all of them are made of


def _vector(kind: ir.Type, lanes: int) -> ir.VectorType:
    return ir.VectorType(kind, lanes)


def _splat(kind: ir.VectorType, value: float) -> IRValue:
    return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)


def _broadcast(b: ir.IRBuilder, scalar: IRValue, lanes: int) -> IRValue:
    kind = _vector(scalar.type, lanes)
    first = b.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(I32, 0))
    return b.shuffle_vector(first, first, _splat(_vector(I32, lanes), 0))


def _call(b: ir.IRBuilder, name: str, result: ir.Type, *arguments: IRValue) -> IRValue:
    known = b.module.globals.get(name)
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(known or ir.Function(b.module, kind, name), arguments)


def _require(b: ir.IRBuilder, *conditions: IRValue) -> None:
    """Write what ends the process, as an exception of the processor does, where a condition does not hold."""
    with b.if_then(b.not_(reduce(b.and_, conditions))):
        _call(b, "llvm.trap", ir.VoidType())
        b.unreachable()


@contextmanager
def _loop(b: ir.IRBuilder, start: IRValue, stop: IRValue) -> Iterator[IRValue]:
    """Write a loop over indices."""
    before, head, body, after = b.block, *(b.append_basic_block() for _ in range(3))
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(I64)
    index.add_incoming(start, before)
    b.cbranch(b.icmp_signed("<", index, stop), body, after)
    b.position_at_end(body)
    yield index
    index.add_incoming(b.add(index, ir.Constant(I64, 1)), b.block)
    b.branch(head)
    b.position_at_end(after)


def _bits(b: ir.IRBuilder, number: IRValue) -> IRValue:
    return b.bitcast(number, _vector(I32, number.type.count))


def _floats(b: ir.IRBuilder, words: IRValue) -> IRValue:
    return b.bitcast(words, _vector(F32, words.type.count))


def _masked(b: ir.IRBuilder, words: IRValue, mask: int) -> IRValue:
    return b.and_(words, _splat(words.type, mask))


# bfloat16: inputs that are denormal count as zeros, and so do results; rounding is to nearest even


def _flushed(b: ir.IRBuilder, number: IRValue) -> IRValue:
    """Return numbers with denormals replaced by zeros of their sign."""
    words = _bits(b, number)
    is_denormal = b.icmp_unsigned("<", _masked(b, words, _MAGNITUDE), _splat(words.type, _LEAST_NORMAL))
    return b.select(is_denormal, _floats(b, _masked(b, words, _SIGN)), number)


def _fused(b: ir.IRBuilder, left: IRValue, right: IRValue, addend: IRValue) -> IRValue:
    """Return left * right + addend, rounded once.

    Whether a result is denormal is asked of the one that is rounded as if exponents had no limit, 2**64 times as large:
    what float32's own rounding takes up to the least normal number is zero too.
    """
    left, right, addend = (_flushed(b, number) for number in (left, right, addend))
    kind, scale = left.type, _splat(left.type, 2.0**64)

    def fma(*numbers: IRValue) -> IRValue:
        return _call(b, f"llvm.fma.v{kind.count}f32", kind, *numbers)

    total = fma(left, right, addend)
    scaled = _bits(b, fma(b.fmul(left, scale), right, b.fmul(addend, scale)))
    least = _splat(scaled.type, _LEAST_NORMAL + (64 << 23))
    is_denormal = b.icmp_unsigned("<", _masked(b, scaled, _MAGNITUDE), least)
    return b.select(is_denormal, _floats(b, _masked(b, _bits(b, total), _SIGN)), total)


def _pair(b: ir.IRBuilder, words: IRValue) -> tuple[IRValue, IRValue]:
    """Return the first and the second bfloat16 of words as float32."""
    return _floats(b, b.shl(words, _splat(words.type, 16))), _floats(b, _masked(b, words, 0xFFFF0000))


def _narrowed(b: ir.IRBuilder, number: IRValue) -> IRValue:
    """Return the bits of numbers rounded to bfloat16, as 32-bit integers."""
    words = _bits(b, _flushed(b, number))
    kind = words.type
    magnitude, half = _masked(b, words, _MAGNITUDE), b.lshr(words, _splat(kind, 16))
    near = b.add(words, b.add(_masked(b, half, 1), _splat(kind, 0x7FFF)))
    is_finite = b.icmp_unsigned("<", magnitude, _splat(kind, _INFINITE))
    is_nan = b.icmp_unsigned(">", magnitude, _splat(kind, _INFINITE))
    other = b.select(is_nan, b.or_(half, _splat(kind, 0x40)), half)
    return b.select(is_finite, b.lshr(near, _splat(kind, 16)), other)


_F16, _I16 = _vector(F32, 16), _vector(I32, 16)
_MAGNITUDE, _SIGN, _INFINITE = 0x7FFFFFFF, 0x80000000, 0x7F800000
_LEAST_NORMAL, _QUIET = 0x00800000, 0x00400000


@instruction("llvm.x86.avx512bf16.dpbf16ps.512", _F16, _F16, _vector(I16, 32), _vector(I16, 32))
def _vdpbf16ps(b: ir.IRBuilder, total: IRValue, left: IRValue, right: IRValue) -> IRValue:
    (left_low, left_high), (right_low, right_high) = (
        _pair(b, b.bitcast(words, _I16)) for words in (left, right)
    )
    return _fused(b, left_low, right_low, _fused(b, left_high, right_high, total))


@instruction("llvm.x86.avx512bf16.cvtneps2bf16.512", _vector(I16, 16), _F16)
def _vcvtneps2bf16(b: ir.IRBuilder, number: IRValue) -> IRValue:
    return b.trunc(_narrowed(b, number), _vector(I16, 16))


@instruction("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _vector(I16, 32), _F16, _F16)
def _vcvtne2ps2bf16(b: ir.IRBuilder, second: IRValue, first: IRValue) -> IRValue:
    order = ir.Constant(_vector(I32, 32), [ir.Constant(I32, lane) for lane in range(32)])
    return b.shuffle_vector(_vcvtneps2bf16(b, first), _vcvtneps2bf16(b, second), order)


# AVX-512


@instruction("llvm.x86.avx512.mask.range.ps.512", _F16, _F16, _F16, I32, _F16, I16, I32)
def _vrangeps(
    b: ir.IRBuilder, left: IRValue, right: IRValue, kind: IRValue, _: IRValue, mask: IRValue, __: IRValue
) -> IRValue:
    """The one with the lesser magnitude, with the sign of the first; where one is a quiet NaN, the other."""
    _require(
        b,
        b.icmp_signed("==", kind, ir.Constant(I32, 0b0010)),
        b.icmp_signed("==", mask, ir.Constant(I16, -1)),
    )
    words = [_bits(b, number) for number in (left, right)]
    magnitudes = [_masked(b, word, _MAGNITUDE) for word in words]  # NaN has the largest
    result = b.select(b.icmp_unsigned("<=", *magnitudes), *magnitudes)
    for magnitude in magnitudes:
        quiet = b.or_(magnitude, _splat(_I16, _QUIET))
        is_nan = b.icmp_unsigned(">", magnitude, _splat(_I16, _INFINITE))
        is_signalling = b.and_(is_nan, b.icmp_unsigned("!=", magnitude, quiet))
        result = b.select(is_signalling, quiet, result)
    return _floats(b, b.or_(result, _masked(b, words[0], _SIGN)))


@instruction("llvm.x86.avx512.mask.fixupimm.ps.512", _F16, _F16, _F16, _I16, I32, I16, I32)
def _vfixupimmps(
    b: ir.IRBuilder, kept: IRValue, number: IRValue, table: IRValue, _: IRValue, mask: IRValue, __: IRValue
) -> IRValue:
    """Responses 0, 2, 4 and 5 of a table: the destination, a quiet NaN of the source, infinities."""
    words = _bits(b, number)
    quiet = b.or_(words, _splat(_I16, _QUIET))
    magnitude = _masked(b, words, _MAGNITUDE)
    is_negative = b.icmp_signed("<", words, _splat(_I16, 0))
    kind = b.select(is_negative, _splat(_I16, 6), _splat(_I16, 7))
    for bits, place in ((0x3F800000, 3), (0xFF800000, 4), (0x7F800000, 5)):
        kind = b.select(b.icmp_unsigned("==", words, _splat(_I16, bits)), _splat(_I16, place), kind)
    kind = b.select(b.icmp_unsigned("==", magnitude, _splat(_I16, 0)), _splat(_I16, 2), kind)
    is_nan = b.icmp_unsigned(">", magnitude, _splat(_I16, _INFINITE))
    is_quiet = b.icmp_unsigned("==", words, quiet)
    kind = b.select(is_nan, b.select(is_quiet, _splat(_I16, 0), _splat(_I16, 1)), kind)
    response = _masked(b, b.lshr(table, b.shl(kind, _splat(_I16, 2))), 15)
    result, is_known = _bits(b, kept), b.icmp_unsigned("==", response, _splat(_I16, 0))
    for place, value in ((2, quiet), (4, _splat(_I16, 0xFF800000)), (5, _splat(_I16, 0x7F800000))):
        is_it = b.icmp_unsigned("==", response, _splat(_I16, place))
        result, is_known = b.select(is_it, value, result), b.or_(is_known, is_it)
    everywhere = [
        b.icmp_signed("==", value, ir.Constant(I16, -1)) for value in (b.bitcast(is_known, I16), mask)
    ]
    _require(b, *everywhere)
    return _floats(b, result)


@instruction("llvm.x86.avx512.permvar.sf.512", _F16, _F16, _I16)
def _vpermps(b: ir.IRBuilder, number: IRValue, places: IRValue) -> IRValue:
    result, low = number, _masked(b, places, 15)
    for lane in range(16):
        at = ir.Constant(I32, lane)
        result = b.insert_element(result, b.extract_element(number, b.extract_element(low, at)), at)
    return result


# integers


def _dot_bytes(b: ir.IRBuilder, total: IRValue, numbers: IRValue, weights: IRValue) -> IRValue:
    """Return sums with the products of four unsigned and four signed bytes each, modulo 2**32."""
    kind = total.type
    for place in range(4):
        weight = b.ashr(b.shl(weights, _splat(kind, 24 - 8 * place)), _splat(kind, 24))
        number = _masked(b, b.lshr(numbers, _splat(kind, 8 * place)), 255)
        total = b.add(total, b.mul(number, weight))
    return total


def _multiply_and_add_halves(b: ir.IRBuilder, left: IRValue, right: IRValue) -> IRValue:
    kind = _vector(I32, left.type.count // 2)
    left, right = (b.bitcast(value, kind) for value in (left, right))
    sixteen = _splat(kind, 16)

    def parts(value: IRValue) -> tuple[IRValue, IRValue]:
        return b.ashr(b.shl(value, sixteen), sixteen), b.ashr(value, sixteen)

    low, high = (b.mul(*pair) for pair in zip(parts(left), parts(right), strict=True))
    return b.add(low, high)


for _name, _lanes in (("512", 16), ("256", 8)):
    _words = _vector(I32, _lanes)
    instruction(f"llvm.x86.avx512.vpdpbusd.{_name}", _words, _words, _words, _words)(_dot_bytes)
for _name, _lanes in (("avx512.pmaddw.d.512", 16), ("avx2.pmadd.wd", 8), ("sse2.pmadd.wd", 4)):
    _halves = _vector(I16, 2 * _lanes)
    instruction(f"llvm.x86.{_name}", _vector(I32, _lanes), _halves, _halves)(_multiply_and_add_halves)


# AMX; what lies beyond the rows and words of a tile is never seen, as each configuration clears all tiles


def _at(b: ir.IRBuilder, tiles: IRValue, tile: IRValue, row: IRValue) -> IRValue:
    """Return the address of a tile's row."""
    place = b.add(b.mul(b.zext(tile, I64), ir.Constant(I64, _TILE)), b.mul(row, ir.Constant(I64, _ROW)))
    return _offset(b, tiles, b.add(place, ir.Constant(I64, _CONFIGURATION)))


def _offset(b: ir.IRBuilder, base: IRValue, offset: IRValue) -> IRValue:
    return b.gep(base, [offset], source_etype=I8)


def _shape(b: ir.IRBuilder, tiles: IRValue, tile: IRValue) -> tuple[IRValue, IRValue]:
    """Return a tile's rows and words of a row; the process ends where it has none, or no whole words."""
    place, zero = b.zext(tile, I64), ir.Constant(I64, 0)
    rows = b.load(_offset(b, tiles, b.add(place, ir.Constant(I64, _ROW_COUNTS))), typ=I8)
    twice = b.add(b.add(place, place), ir.Constant(I64, _ROW_BYTES))
    row_bytes = b.zext(b.load(_offset(b, tiles, twice), typ=I16), I64)
    rows = b.zext(rows, I64)
    _require(
        b,
        b.icmp_unsigned("<", tile, ir.Constant(I8, 8)),
        b.icmp_unsigned("!=", rows, zero),
        b.icmp_unsigned("==", b.and_(row_bytes, ir.Constant(I64, 3)), zero),
    )
    return rows, b.lshr(row_bytes, ir.Constant(I64, 2))


def _lanes_below(b: ir.IRBuilder, words: IRValue) -> IRValue:
    """Return a vector of i1 of which the first ones are set."""
    lanes = ir.Constant(_I16, [ir.Constant(I32, lane) for lane in range(16)])
    return b.icmp_unsigned("<", lanes, _broadcast(b, b.trunc(words, I32), 16))


@instruction("llvm.x86.ldtilecfg", ir.VoidType(), POINTER)
def _ldtilecfg(b: ir.IRBuilder, tiles: IRValue, source: IRValue) -> None:
    layout = [b.load(_offset(b, source, ir.Constant(I64, place)), typ=I8) for place in range(64)]
    zero = ir.Constant(I8, 0)
    reserved = reduce(b.or_, (layout[place] for place in _RESERVED))
    _require(b, b.icmp_unsigned("==", layout[0], ir.Constant(I8, 1)), b.icmp_unsigned("==", reserved, zero))
    for tile in range(8):
        low, high = layout[_ROW_BYTES + 2 * tile :][:2]
        rows = layout[_ROW_COUNTS + tile]
        _require(
            b,
            b.icmp_unsigned("==", high, zero),
            b.icmp_unsigned("<=", low, ir.Constant(I8, _ROW)),
            b.icmp_unsigned("<=", rows, ir.Constant(I8, 16)),
            b.icmp_unsigned("==", b.icmp_unsigned("==", low, zero), b.icmp_unsigned("==", rows, zero)),
        )
    for place, value in enumerate(layout):
        b.store(value, _offset(b, tiles, ir.Constant(I64, place)))
    with _loop(b, ir.Constant(I64, 0), ir.Constant(I64, 8 * 16)) as row:
        b.store(_splat(_I16, 0), _at(b, tiles, ir.Constant(I8, 0), row), align=64)


@instruction("llvm.x86.tilerelease", ir.VoidType())
def _tilerelease(b: ir.IRBuilder, tiles: IRValue) -> None:
    b.store(_splat(_I16, 0), tiles, align=64)


@instruction("llvm.x86.tileloadd64", ir.VoidType(), I8, POINTER, I64)
def _tileloadd(b: ir.IRBuilder, tiles: IRValue, tile: IRValue, source: IRValue, step: IRValue) -> None:
    rows, words = _shape(b, tiles, tile)
    lanes, four = _lanes_below(b, words), ir.Constant(I32, 4)
    with _loop(b, ir.Constant(I64, 0), rows) as row:
        there = _offset(b, source, b.mul(row, step))
        loaded = _call(b, "llvm.masked.load.v16i32.p0", _I16, there, four, lanes, _splat(_I16, 0))
        b.store(loaded, _at(b, tiles, tile, row), align=64)


@instruction("llvm.x86.tilestored64", ir.VoidType(), I8, POINTER, I64)
def _tilestored(b: ir.IRBuilder, tiles: IRValue, tile: IRValue, target: IRValue, step: IRValue) -> None:
    rows, words = _shape(b, tiles, tile)
    lanes, four = _lanes_below(b, words), ir.Constant(I32, 4)
    with _loop(b, ir.Constant(I64, 0), rows) as row:
        stored = b.load(_at(b, tiles, tile, row), align=64, typ=_I16)
        there = _offset(b, target, b.mul(row, step))
        _call(b, "llvm.masked.store.v16i32.p0", ir.VoidType(), stored, there, four, lanes)


def _product(
    b: ir.IRBuilder,
    tiles: IRValue,
    numbers: Sequence[IRValue],
    sums: int,
    step: Callable[..., list[IRValue]],
    finish: Callable[..., IRValue],
) -> None:
    """Write the product of two tiles, added to a third.

    Args:
        b: the function.
        tiles: address of all tiles.
        numbers: the three tiles: of results, left and right operands.
        sums: vectors of sums that each row of results has, zeros at first.
        step: returns them with the products of a broadcast word and a row of words added.
        finish: returns a row of results with them added.
    """
    total, left, right = numbers
    (rows, columns), (left_rows, depth), (right_rows, right_columns) = (
        _shape(b, tiles, tile) for tile in numbers
    )
    _require(
        b,
        *(b.icmp_unsigned("!=", one, other) for one, other in ((total, left), (total, right), (left, right))),
        b.icmp_unsigned("==", rows, left_rows),
        b.icmp_unsigned("==", columns, right_columns),
        b.icmp_unsigned("==", depth, right_rows),
    )
    zero = ir.Constant(I64, 0)
    places = [b.alloca(_I16) for _ in range(sums)]
    with _loop(b, zero, rows) as row:
        for place in places:
            b.store(_splat(_I16, 0), place)
        with _loop(b, zero, depth) as word:
            at = _offset(b, _at(b, tiles, left, row), b.mul(word, ir.Constant(I64, 4)))
            one = _broadcast(b, b.load(at, typ=I32), 16)
            other = b.load(_at(b, tiles, right, word), align=64, typ=_I16)
            added = step(b, [b.load(place, typ=_I16) for place in places], one, other)
            for place, value in zip(places, added, strict=True):
                b.store(value, place)
        there = _at(b, tiles, total, row)
        result = finish(b, b.load(there, align=64, typ=_I16), [b.load(place, typ=_I16) for place in places])
        b.store(result, there, align=64)


@instruction("llvm.x86.tdpbf16ps", ir.VoidType(), I8, I8, I8)
def _tdpbf16ps(b: ir.IRBuilder, tiles: IRValue, *numbers: IRValue) -> None:
    """First and second products have sums of their own, which are added to each other, then to the result."""

    def step(b: ir.IRBuilder, sums: list[IRValue], one: IRValue, other: IRValue) -> list[IRValue]:
        pairs = zip(_pair(b, one), _pair(b, other), sums, strict=True)
        return [_bits(b, _fused(b, x, y, _floats(b, total))) for x, y, total in pairs]

    def finish(b: ir.IRBuilder, result: IRValue, sums: list[IRValue]) -> IRValue:
        low, high = (_floats(b, total) for total in sums)
        one = _splat(_F16, 1.0)
        return _bits(b, _fused(b, one, _floats(b, result), _fused(b, one, low, high)))

    _product(b, tiles, numbers, 2, step, finish)


@instruction("llvm.x86.tdpbusd", ir.VoidType(), I8, I8, I8)
def _tdpbusd(b: ir.IRBuilder, tiles: IRValue, *numbers: IRValue) -> None:
    def step(b: ir.IRBuilder, sums: list[IRValue], one: IRValue, other: IRValue) -> list[IRValue]:
        return [_dot_bytes(b, sums[0], one, other)]

    _product(b, tiles, numbers, 1, step, lambda b, result, sums: b.add(result, sums[0]))
