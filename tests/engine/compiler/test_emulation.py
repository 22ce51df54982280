"""Emulated instructions against Intel's description of them, and against the processor where it has them."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from llvmlite import ir

from engine.compiler.emit.jit import Code, compile_module
from engine.compiler.emit.target import Target, target_named
from engine.compiler.memory.alignment import address_of
from engine.dtypes import Array
from tests.engine.compiler.emulation import HOST, INSTRUCTIONS, is_emulated, plain

ROWS = 200
"""Vectors that each instruction is tried on."""
SPECIAL = [
    *(0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000),  # zeros, ones, infinities
    *(0x7FC00000, 0x7F800001, 0xFFC12345, 0x7FFFFFFF),  # NaN, quiet and signalling
    *(0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00400000),  # denormal numbers
    *(0x00800000, 0x80800000, 0x00800001, 0x00FFFFFF),  # the least normal ones
    *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F7F0000, 0x7F7F8000),  # the largest ones
    *(0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001),  # halfway between two bfloat16, and beside it
]
"""Bits of float32 numbers at which rounding, denormals and signs matter."""
BARELY_DENORMAL = (0x00800000, 0x9A000000, 0x1A000000)
"""2**-126, -2**-75 and 2**-75: float32 would round 2**-126 - 2**-75 * 2**-75 to the least normal number."""


def words_of(seed: int) -> Array:
    """Return rows of 16 random words: numbers whose products are large, small or denormal, and special ones."""
    random = np.random.default_rng(seed)
    exponents = random.choice([2.0**-126, 2.0**-70, 2.0**-63, 1.0, 1.0, 1.0, 2.0**60, 2.0**126], (ROWS, 16))
    numbers = random.uniform(-2, 2, (ROWS, 16)) * exponents
    words = numbers.astype(np.float32).view(np.uint32)
    is_special = random.random((ROWS, 16)) < 0.3
    words = np.where(is_special, random.choice(np.array(SPECIAL, np.uint32), (ROWS, 16)), words)
    words[0] = BARELY_DENORMAL[seed]
    return words


def halves(words: Array) -> tuple[Array, Array]:
    """Return the first and second bfloat16 of words as float32."""
    return (words << np.uint32(16)).view(np.float32), (words & np.uint32(0xFFFF0000)).view(np.float32)


def flushed(numbers: Array) -> Array:
    """Return numbers with denormals replaced by zeros of their sign."""
    return np.where(np.abs(numbers) < np.float32(2.0**-126), np.copysign(np.float32(0), numbers), numbers)


def fused(left: float, right: float, addend: float) -> float:
    """Return left * right + addend, rounded once to 24 bits, to nearest even; what is denormal then is zero."""
    near = left * right + addend  # exact where it is zero or not finite, but for products beyond float32
    if not np.isfinite(near) or near == 0:
        return near
    exact = Fraction(left) * Fraction(right) + Fraction(addend)
    # the place of the lowest of 24 bits
    place = abs(exact.numerator).bit_length() - exact.denominator.bit_length() - 24
    while abs(exact) >= Fraction(2) ** (place + 24):
        place += 1
    rounded = round(exact / Fraction(2) ** place) * Fraction(2) ** place
    if abs(rounded) < Fraction(2) ** -126:
        return float(np.copysign(0.0, near))
    return float(rounded) if abs(rounded) < Fraction(2) ** 128 else float(np.copysign(np.inf, near))


fused_lanes = np.vectorize(fused, otypes=[np.float32])


def dot_of_pairs(total: Array, left: Array, right: Array) -> Array:
    """Return what VDPBF16PS makes of words: the products of second numbers are added first."""
    result = flushed(total.view(np.float32))
    with np.errstate(all="ignore"):
        for one, other in zip(reversed(halves(left)), reversed(halves(right)), strict=True):
            result = fused_lanes(flushed(one), flushed(other), result)
    return result.view(np.uint32)


def rounded(words: Array) -> Array:
    """Return the bits of the nearest bfloat16, the even one of two, by distances; denormal numbers are zeros."""
    numbers = flushed(words.view(np.float32))
    down = numbers.view(np.uint32) >> np.uint32(16)
    with np.errstate(all="ignore"):
        exact = np.abs(numbers.astype(np.float64))
        low, high = (
            np.where(near == 0x7F80, 2.0**128, (near << np.uint32(16)).view(np.float32).astype(np.float64))
            for near in (down & np.uint32(0x7FFF), (down & np.uint32(0x7FFF)) + np.uint32(1))
        )
        is_up = (high - exact < exact - low) | ((high - exact == exact - low) & (down % 2 == 1))
    near = np.where(np.isfinite(numbers), down + is_up, down)
    return np.where(np.isnan(numbers), down | np.uint32(0x40), near).astype(np.uint16)


def modulo(sums: Array) -> Array:
    """Return the lower 32 bits of integers."""
    return (sums & 0xFFFFFFFF).astype(np.uint32)


def dot_of_bytes(total: Array, numbers: Array, weights: Array) -> Array:
    """Return what VPDPBUSD makes of words."""
    products = numbers.view(np.uint8).astype(np.int64) * weights.view(np.int8).astype(np.int64)
    sums: Array = products.reshape(*total.shape, 4).sum(-1) + total.astype(np.int64)
    return modulo(sums)


def dot_of_halves(left: Array, right: Array) -> Array:
    """Return what PMADDWD makes of words."""
    products = left.view(np.int16).astype(np.int64) * right.view(np.int16).astype(np.int64)
    return modulo(products.reshape(*left.shape, 2).sum(-1))


def lesser(left: Array, right: Array, _: Array) -> Array:
    """Return what VRANGEPS makes of words: the number of lesser magnitude, with the sign of the first."""
    one, other = left.view(np.float32), right.view(np.float32)
    magnitude = np.where(
        is_signalling(left) | is_signalling(right), np.nan, np.fmin(np.abs(one), np.abs(other))
    )
    return np.copysign(magnitude.astype(np.float32), one).view(np.uint32)


def is_signalling(words: Array) -> Array:
    """Return which words are a signalling NaN."""
    is_quiet: Array = (words & np.uint32(0x400000)) != 0
    return np.isnan(words.view(np.float32)) & ~is_quiet


def fixed(kept: Array, source: Array, table: Array) -> Array:
    """Return what VFIXUPIMMPS makes of words."""
    number = source.view(np.float32)
    is_quiet = np.isnan(number) & ~is_signalling(source)
    kinds = [
        is_quiet,
        is_signalling(source),
        number == 0,
        number == 1,
        number == -np.inf,
        number == np.inf,
        number < 0,
    ]
    kind = np.select(kinds, range(len(kinds)), len(kinds)).astype(np.uint32)
    response = (table >> (4 * kind)) & np.uint32(15)
    responses = ((2, source | np.uint32(0x400000)), (4, np.uint32(0xFF800000)), (5, np.uint32(0x7F800000)))
    result = kept
    for place, value in responses:
        result = np.where(response == place, value, result)
    return result


@dataclass(frozen=True)
class Case:
    """An instruction.

    Attributes:
        name: its intrinsic.
        target: what processor has it.
        expected: returns its results, 16 of a row, from its operands.
        operands: seeds of words, or words that are the same in all rows.
        immediates: operands that are no vectors.
        lanes: words of an operand.
    """

    name: str
    target: str
    expected: Callable[..., Array]
    operands: tuple[int | Array, ...]
    immediates: tuple[int, ...] = ()
    lanes: int = 16


WHOLE = np.arange(16, dtype=np.uint32)
CASES = (
    Case("avx512bf16.dpbf16ps.512", "bf16", dot_of_pairs, (0, 1, 2)),
    Case("avx512bf16.cvtneps2bf16.512", "bf16", rounded, (0,)),
    Case(
        "avx512bf16.cvtne2ps2bf16.512",
        "bf16",
        lambda second, first: np.concatenate([rounded(first), rounded(second)], axis=-1),
        (0, 1),
    ),
    Case("avx512.vpdpbusd.512", "vnni", dot_of_bytes, (0, 1, 2)),
    Case("avx512.vpdpbusd.256", "avxvnni", dot_of_bytes, (0, 1, 2), lanes=8),
    Case("avx512.pmaddw.d.512", "avx512", dot_of_halves, (0, 1)),
    Case("avx2.pmadd.wd", "avx2", dot_of_halves, (0, 1), lanes=8),
    Case("sse2.pmadd.wd", "sse", dot_of_halves, (0, 1), lanes=4),
    Case("avx512.mask.range.ps.512", "avx512", lesser, (0, 1, 0), (2, -1, 4)),
    Case("avx512.mask.fixupimm.ps.512", "avx512", fixed, (0, 1, np.full(16, 0x04054022)), (0, -1, 4)),
    Case("avx512.permvar.sf.512", "avx512", lambda a, places: a[:, places[0] % 16], (0, WHOLE[::-1] * 5 + 3)),
)


def text_of(case: Case) -> str:
    """Return a module whose function reads operands from addresses, and writes the instruction's result to the last."""
    kind, _ = INSTRUCTIONS[f"llvm.x86.{case.name}"]
    module, pointer, immediates = ir.Module(), ir.PointerType(), iter(case.immediates)
    count = len(kind.args) - len(case.immediates)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (count + 1)), "kernel")
    addresses = iter(function.args)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    values = [
        b.load(next(addresses), typ=operand, align=4)
        if isinstance(operand, ir.VectorType)
        else ir.Constant(operand, next(immediates))
        for operand in kind.args
    ]
    result = b.call(ir.Function(module, kind, f"llvm.x86.{case.name}"), values)
    b.store(result, next(addresses), align=4)
    b.ret_void()
    text = str(module)
    return text.replace("x i16>", "x bfloat>") if "bf16" in case.name else text


def results_of(code: Code, arrays: list[Array], result: Array) -> Array:
    """Run an instruction on each row of arrays of words; returns its results, of as many bytes as those of `result`."""
    out = np.zeros_like(result)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + 1))(code.address)
    for row in range(len(out)):
        function(*(address_of(array[row]) for array in arrays), address_of(out[row]))
    return out


def without_nan(bits: Array) -> Array:
    """Return 32-bit words with all NaN the same: which of several operands' they are is left to the processor."""
    return np.where(np.isnan(bits.view(np.float32)), np.uint32(0x7FC00000), bits)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_instruction(case: Case) -> None:
    arrays = [
        words_of(operand)[:, : case.lanes].copy()
        if isinstance(operand, int)
        else np.tile(operand.astype(np.uint32), (ROWS, 1))
        for operand in case.operands
    ]
    expected = np.ascontiguousarray(case.expected(*arrays))
    text = text_of(case)
    runs = [compile_module(plain(text), "kernel", HOST)]
    if not is_emulated(target_named(case.target)):
        runs.append(compile_module(text, "kernel", target_named(case.target)))
    for code in runs:
        result = results_of(code, arrays, expected)
        if case.expected in (dot_of_pairs, lesser):
            result, expected = without_nan(result), without_nan(expected)
        np.testing.assert_array_equal(result, expected)


TILES = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.{product}(i8, i8, i8)

define void @kernel(ptr %configuration, ptr %total, ptr %left, ptr %right) {{
entry:
  call void @llvm.x86.ldtilecfg(ptr %configuration)
  call void @llvm.x86.tileloadd64(i8 3, ptr %total, i64 80)
  call void @llvm.x86.tileloadd64(i8 {left}, ptr %left, i64 80)
  call void @llvm.x86.tileloadd64(i8 7, ptr %right, i64 80)
  {before}
  call void @llvm.x86.{product}(i8 3, i8 {left}, i8 7)
  call void @llvm.x86.tilestored64(i8 3, ptr %total, i64 80)
  call void @llvm.x86.tilerelease()
  ret void
}}
"""
"""A product of tiles, whose rows lie 80 bytes apart."""


def compile_tiles(product: str, target: Target | None = None, left: int = 5, before: str = "") -> Code:
    """Return the code of a product of tiles for a target, or else emulated."""
    text = TILES.format(product=product, left=left, before=before)
    return compile_module(plain(text) if target is None else text, "kernel", target or HOST)


def configuration(rows: int, depth: int, columns: int) -> Array:
    """Return the configuration of tiles 3, 5 and 7 for a product of that size."""
    layout = np.zeros(64, np.uint8)
    layout[0] = 1
    for tile, shape in ((3, (rows, columns)), (5, (rows, depth)), (7, (depth, columns))):
        layout[48 + tile], layout[16 + 2 * tile] = shape[0], 4 * shape[1]
    return layout


def run_tiles(code: Code, *arrays: Array) -> None:
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(code.address)(*map(address_of, arrays))


def product_of_pairs(total: Array, left: Array, right: Array) -> Array:
    """Return what TDPBF16PS makes of words: first and second products have sums of their own."""
    with np.errstate(all="ignore"):
        sums = []
        for one, other in zip(halves(left), halves(right), strict=True):
            added = np.zeros(total.shape, np.float32)
            for word in range(left.shape[1]):
                added = fused_lanes(flushed(one[:, word, None]), flushed(other[word]), added)
            sums.append(added)
        result: Array = fused_lanes(1.0, flushed(total.view(np.float32)), fused_lanes(1.0, *sums))
    return result.view(np.uint32)


def product_of_bytes(total: Array, left: Array, right: Array) -> Array:
    """Return what TDPBUSD makes of words."""
    for word in range(left.shape[1]):
        numbers, weights = np.broadcast_arrays(left[:, word, None], right[word])
        total = dot_of_bytes(total, np.ascontiguousarray(numbers), np.ascontiguousarray(weights))
    return total


@pytest.mark.parametrize("size", [(16, 16, 16), (5, 3, 7), (1, 16, 2), (16, 1, 1)])
@pytest.mark.parametrize(
    ("product", "expected"), [("tdpbf16ps", product_of_pairs), ("tdpbusd", product_of_bytes)]
)
def test_product_of_tiles(product: str, expected: Callable[..., Array], size: tuple[int, int, int]) -> None:
    """Of as many rows and words as are configured; memory beside them stays as it is."""
    rows, depth, columns = size
    random = np.random.default_rng(0)
    total = random.standard_normal((16, 20)).astype(np.float32).view(np.uint32)
    pairs = random.standard_normal((2, 16, 40)).astype(np.float32).view(np.uint32) >> np.uint32(16)
    words = [total, *pairs.astype(np.uint16).view(np.uint32)]
    shapes = ((rows, columns), (rows, depth), (depth, columns))
    parts = [
        np.ascontiguousarray(array[:high, :wide]) for array, (high, wide) in zip(words, shapes, strict=True)
    ]
    wanted = words[0].copy()
    wanted[:rows, :columns] = expected(*parts)
    amx = target_named("amx")
    for target in (None,) if is_emulated(amx) else (None, amx):
        total = words[0].copy()
        run_tiles(compile_tiles(product, target), configuration(*size), total, *words[1:])
        np.testing.assert_array_equal(total, wanted)


def changed(**places: int) -> Array:
    """Return a valid configuration with bytes changed."""
    layout = configuration(4, 4, 4)
    for name, value in places.items():
        layout[int(name.removeprefix("at"))] = value
    return layout


FAULTS = {
    "no palette": changed(at0=0),
    "reserved byte": changed(at40=1),
    "17 rows": changed(at51=17, at53=17),
    "68 bytes": changed(at22=68, at30=68),
    "a tile without rows": changed(at49=0, at18=16),
    "no whole words": changed(at22=15, at30=15),
    "rows of results": changed(at51=5),
    "words of results": changed(at22=20),
    "words of left operands": changed(at26=20),
    "tile that was left out": changed(at55=0, at30=0),
}
"""What is wrong -> a configuration at which the processor raises an exception."""


def print_signals() -> None:
    """Run products in a process each, and print what ended it; 0 for none."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    arrays = [np.zeros((16, 20), np.uint32) for _ in range(3)]
    valid = configuration(4, 4, 4)
    runs = [(compile_tiles("tdpbusd"), layout) for layout in (valid, *FAULTS.values())]
    runs.append((compile_tiles("tdpbusd", left=7), valid))
    runs.append((compile_tiles("tdpbusd", before="call void @llvm.x86.tilerelease()"), valid))
    for code, layout in runs:
        process = os.fork()
        if not process:
            run_tiles(code, layout, *arrays)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def test_wrong_configurations_end_the_process() -> None:
    """All of them, and a tile that is both operands, and tiles that were released."""
    command = "from tests.engine.compiler.test_emulation import print_signals; print_signals()"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    valid, *others = map(int, done.stdout.split())
    assert valid == 0
    assert len(others) == len(FAULTS) + 2
    assert all(code in (-signal.SIGILL, -signal.SIGTRAP) for code in others), others


def test_an_instruction_without_emulation_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"no emulation of llvm\.x86\.rdtsc"):
        plain("declare i64 @llvm.x86.rdtsc()\n  %now = call i64 @llvm.x86.rdtsc()")
