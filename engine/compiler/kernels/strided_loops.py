"""Lines of elements, the inner part of every kernel that walks over strided arrays.

A line runs along the axis on which the output's elements are contiguous. Operands that lie so too are read vector by
vector; of those that are contiguous along another axis a square of lanes x lanes elements is read and transposed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import I32, IRIndex, IRValue

Strides = tuple[int, ...]
Compute = Callable[[list[IRValue]], IRValue]
"""Computes a result from the operands' values, all vectors or all scalars."""

BLOCK = 128
"""Steps of a sum that is added to the whole one."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """Pointer of a strided loop over an array.

    Attributes:
        base: address of the first element.
        across: elements between two lines.
        along: elements between two neighbours on a line.
    """

    base: IRValue
    across: IRIndex
    along: IRIndex


def emit_row(e: Emitter, compute: Compute, sources: Sequence[Pointer], out: IRValue, length: IRIndex) -> None:
    """Write one line's elements. All sources have `along` 1, or 0 for one element that all share."""
    vector = _vector_writer(e, compute, sources, out)
    for index, count in e.each_vector(length):
        vector(index, count)


def emit_piece(
    e: Emitter,
    compute: Compute,
    sources: Sequence[Pointer],
    out: IRValue,
    span: tuple[IRIndex, IRIndex],
    length: int,
) -> None:
    """Write elements of a span of a line of `length`, which starts at a multiple of the vector and ends so or there."""
    vector = _vector_writer(e, compute, sources, out)
    start, stop = span
    whole = length - length % e.lanes
    if whole:
        with e.loop(start, e.minimum(stop, whole), e.lanes) as loop:
            vector(loop.index, e.lanes)
    if whole < length:
        if isinstance(stop, int):
            vector(whole, length - whole)
        else:
            with e.when(e.compare("==", stop, length)):
                vector(whole, length - whole)


def _vector_writer(
    e: Emitter, compute: Compute, sources: Sequence[Pointer], out: IRValue
) -> Callable[[IRIndex, IRIndex], None]:
    """Return what writes so many elements of a line from an index on; what all share is loaded once, before."""
    shared = {place: e.load_broadcast(s.base) for place, s in enumerate(sources) if s.along == 0}

    def write(index: IRIndex, count: IRIndex) -> None:
        values = [
            shared[place] if place in shared else e.load(source.base, index, count=count)
            for place, source in enumerate(sources)
        ]
        e.store(compute(values), out, index, count=count)

    return write


def emit_scalar_row(
    e: Emitter, compute: Compute, sources: Sequence[Pointer], out: Pointer, start: IRIndex, stop: IRIndex
) -> None:
    """Write elements start … stop of one line one by one, whatever the strides."""
    with e.loop(start, stop) as loop:
        values = [e.load_scalar(source.base, e.mul(loop.index, source.along)) for source in sources]
        e.store_scalar(compute(values), out.base, e.mul(loop.index, out.along))


def emit_square(
    e: Emitter, compute: Compute, sources: Sequence[Pointer], out: Pointer, lines: int, length: int
) -> None:
    """Write `length` elements of `lines` neighbouring lines, both at most one vector.

    Sources have `along` 1 or 0, or else `across` 1; the output has `along` 1.
    """
    if _is_interleaved(e, sources, out, lines, length):
        _emit_interleaved(e, compute, sources, out, length)
        return
    transposed = {
        place: _read_transposed(e, source, lines, length)
        for place, source in enumerate(sources)
        if source.along not in (0, 1)
    }
    for line in range(lines):
        values = []
        for place, source in enumerate(sources):
            if place in transposed:
                values.append(transposed[place][line])
            elif source.along:
                values.append(e.load(source.base, line * source.across, count=length))
            else:
                values.append(e.load_broadcast(source.base, line * source.across))
        e.store(compute(values), out.base, line * out.across, count=length)


def _is_interleaved(e: Emitter, sources: Sequence[Pointer], out: Pointer, lines: int, length: int) -> bool:
    """Whether short lines are contiguous, so that vectors may span several, in the output and untransposed sources."""
    is_short = length in (2, 4, 8) and length < e.lanes == lines
    return (
        is_short and out.across == length and all(s.across == (1 if s.along > 1 else length) for s in sources)
    )


def _emit_interleaved(
    e: Emitter, compute: Compute, sources: Sequence[Pointer], out: Pointer, length: int
) -> None:
    """Write a vector's lanes of lines: elements that are contiguous across lines are deinterleaved."""
    operands = []
    for source in sources:
        step = source.along if source.along > 1 else e.lanes
        vectors = [e.load(source.base, place * step) for place in range(length)]
        operands.append(e.transpose(vectors) if source.along > 1 else vectors)
    for place, values in enumerate(zip(*operands, strict=True)):
        e.store(compute(list(values)), out.base, place * e.lanes)


def emit_fold(
    e: Emitter,
    length: IRIndex,
    totals: Sequence[IRValue],
    body: Callable[[IRIndex, IRIndex, list[IRValue]], list[IRValue]],
) -> list[IRValue]:
    """Write a pass over a line of `length` elements, vector by vector; `body` makes new totals of the old ones.

    It is given the first element of a vector, how many elements the vector has, and the totals.
    """
    totals = list(totals)
    if not isinstance(length, int):
        whole = e.mul(e.divmod(length, e.lanes)[0], e.lanes)
        for first, last, count in ((0, whole, e.lanes), (whole, length, e.sub(length, whole))):
            with e.loop(first, last, e.lanes, carry=totals) as loop:
                loop.following = body(loop.index, count, loop.carried)
            totals = loop.results
        return totals
    whole = length - length % e.lanes
    if whole:
        with e.loop(0, whole, e.lanes, carry=totals) as loop:
            loop.following = body(loop.index, e.lanes, loop.carried)
        totals = loop.results
    return body(whole, length - whole, totals) if whole < length else totals


def emit_fold_blocks(
    e: Emitter,
    length: IRIndex,
    start: Sequence[IRValue],
    body: Callable[[IRIndex, list[IRValue]], list[IRValue]],
    combine: Callable[[IRValue, IRValue], IRValue],
) -> list[IRValue]:
    """Write a pass over `length` steps with totals of their own for each `BLOCK` of them: long sums lose digits."""
    is_one = isinstance(length, int) and length <= BLOCK
    with e.loop(0, length, BLOCK, carry=start) as blocks:
        stop = length if is_one else e.minimum(e.add(blocks.index, BLOCK), length)
        first = 0 if is_one else blocks.index
        with e.loop(first, stop, carry=start) as loop:
            loop.following = body(loop.index, loop.carried)
        blocks.following = [combine(*pair) for pair in zip(blocks.carried, loop.results, strict=True)]
    return blocks.results


def moved(e: Emitter, pointer: Pointer, lines: IRIndex, elements: IRIndex) -> Pointer:
    """Return a pointer so many lines and elements further."""
    offset = e.mul(lines, pointer.across), e.mul(elements, pointer.along)
    return Pointer(e.address(pointer.base, *offset), pointer.across, pointer.along)


def transpose(e: Emitter, rows: Sequence[IRValue]) -> list[IRValue]:
    """Return the columns of a square of lanes x lanes elements.

    In each step pairs of rows swap halves of blocks twice as large as in the step before.
    """
    rows = list(rows)
    step = 1
    while step < e.lanes:
        for first in range(e.lanes):
            if first & step:
                continue
            low, high = rows[first], rows[first | step]
            upper = [lane ^ step | e.lanes if lane & step else lane for lane in range(e.lanes)]
            lower = [lane | e.lanes if lane & step else lane | step for lane in range(e.lanes)]
            rows[first], rows[first | step] = (_shuffle(e, low, high, lanes) for lanes in (upper, lower))
        step *= 2
    return rows


def _read_transposed(e: Emitter, source: Pointer, lines: int, length: int) -> list[IRValue]:
    """Read what is contiguous across lines; returns a vector along each line."""
    rows = [e.load(source.base, place * source.along, count=lines) for place in range(length)]
    return transpose(e, rows + [e.splat(0.0)] * (e.lanes - length))


def _shuffle(e: Emitter, low: IRValue, high: IRValue, lanes: Sequence[int]) -> IRValue:
    mask = ir.Constant(ir.VectorType(I32, e.lanes), [ir.Constant(I32, lane) for lane in lanes])
    return e.builder.shuffle_vector(low, high, mask)
