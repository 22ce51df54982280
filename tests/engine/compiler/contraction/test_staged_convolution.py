"""Convolutions of operands rounded to bfloat16, in AMX tiles and in vectors, against the numpy routine."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.contraction.staged_layout import StagedLayout, choose_runs
from engine.compiler.contraction.staged_loops import PixelGroups
from engine.compiler.contraction.staging import can_stage_planes
from engine.compiler.emit.bfloat16 import dot, pair_up
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target, bf16_targets, supported_targets
from engine.compiler.kernels.bf16_rate import bf16_speedup
from engine.compiler.memory.region import Region, line
from engine.dtypes import Array
from engine.kernels.bfloat16 import bfloat16_bits, rounded_to_bfloat16
from engine.layers.convolution import transposed_convolve
from tests.cases import check_each
from tests.engine.compiler.emulation import BF16, WIDTHS
from tests.engine.compiler.harness import examples_of_kernels, run
from tests.engine.compiler.kernels.images import Pair, convolved, numbers, output_size, strides
from tests.engine.compiler.kernels.windows import WINDOWS, largest_of_windows, pooling

every_arithmetic = pytest.mark.parametrize("target", [*WIDTHS, *BF16], ids=lambda target: target.name)
small = st.integers(1, 3)
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    np.inf,
    -np.inf,
    np.nan,
    3.4028235e38,
    -3.4028235e38,
    3.39e38,
    1.00390625,
    1.01171875,
]


def group_of(target: Target, pixels: int, vectors: int) -> tuple[int, int]:
    """Return how many tiles or vectors a product takes; AMX has room for no more than two by two."""
    return (min(pixels, 2), min(vectors, 2)) if target.has_tiles else (pixels, vectors)


def expected(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int],
) -> Array:
    """Return the numpy routine's result on rounded operands."""
    rounded = rounded_to_bfloat16(x), rounded_to_bfloat16(weight)
    return convolved(*rounded, bias, stride, dilation, 1, padding)


@every_arithmetic
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any kernel, stride, dilation, padding and group; pixels of the input may lie apart; any partition into chunks."""
    kernel, stride, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    padding = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 7)))
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    rows, columns = (n + data.draw(st.integers(0, extra)) for n, extra in zip(least, (4, 30), strict=True))
    channels = data.draw(st.sampled_from([1, 2, 3, 5, 16, 31, 33, 40, 66]))
    filters = data.draw(st.sampled_from([1, 3, 16, 17, 40, 65]))
    images, gap = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 3))
    wide = numbers(images, rows, columns, channels + gap)
    x, weight = wide[..., :channels], numbers(filters, channels, *kernel, seed=1)
    bias = numbers(filters, seed=2) if data.draw(st.booleans()) else None
    size = output_size(x, kernel, stride, dilation, padding)
    made = StagedConvolution(
        shape=ConvShape(
            images=images,
            size=size,
            channels=channels,
            filters=filters,
            kernel=kernel,
            stride=stride,
            dilation=dilation,
        ),
        strides=ImageStrides(strides(rows, columns, channels + gap), strides(*size, filters)),
        padding=ImplicitPadding((rows, columns), (padding[0] // 2, padding[1] // 2)),
        rows=data.draw(st.integers(1, size[0])),
        blocks=data.draw(st.integers(1, 4)),
        has_tiles=target.has_tiles,
        group=group_of(target, data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))),
        lanes=target.lanes,
        rounds=True,
        prefetches_weights=data.draw(st.booleans()),
    )
    wanted = expected(x, weight, bias, stride, dilation, padding=padding)
    *_, out = run(made, target, wide, *made.packing.pack(weight, bias), np.zeros_like(wanted))
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


def make_plain(target: Target, x: Array, filters: int, epilogue: Epilogue | None = None) -> StagedConvolution:
    """Return the kernel of a convolution of 3 x 3 with padding around the image."""
    images, rows, columns, channels = x.shape
    return StagedConvolution(
        shape=ConvShape(
            images=images, size=(rows, columns), channels=channels, filters=filters, kernel=(3, 3)
        ),
        strides=ImageStrides(strides(rows, columns, channels), strides(rows, columns, filters)),
        padding=ImplicitPadding((rows, columns), (1, 1)),
        rows=4,
        blocks=1,
        has_tiles=target.has_tiles,
        group=group_of(target, 3, 2),
        lanes=target.lanes,
        rounds=True,
        epilogue=epilogue or Epilogue(),
    )


@every_arithmetic
def test_groups_of_pixels(target: Target) -> None:
    """Parts of a row, a row, and some rows, where the last chunk has fewer: the same bits."""
    x, weight, bias = numbers(2, 9, 7, 40), numbers(40, 40, 3, 3, seed=1), numbers(40, seed=2)
    plain = make_plain(target, x, 40)
    wanted = expected(x, weight, bias, (1, 1), (1, 1), padding=(2, 2))

    def result(kernel: StagedConvolution) -> Array:
        return run(kernel, target, x, *kernel.packing.pack(weight, bias), np.zeros_like(wanted))[3]

    of_plain = result(plain)

    def check(case: tuple[int, int]) -> None:
        pixels, rows = case
        made = replace(plain, group=group_of(target, pixels, 1), rows=rows, prefetches_weights=True)
        out = result(made)
        np.testing.assert_array_equal(out.view(np.uint32), of_plain.view(np.uint32))
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)

    check_each([(1, 9), (3, 4), (7, 2), (15, 9), (15, 4), (22, 2)], check)


@dataclass(frozen=True)
class Census:
    """A kernel that writes the number of pixels of each group of a chunk in the group's place."""

    groups: PixelGroups
    rows: int
    chunks = 1
    scratch = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return (line(self.groups.count, is_written=True),)

    def emit(self, e: Emitter) -> None:
        for group in self.groups.each(e, self.rows):
            e.store(e.splat(float(group.count)), e.argument(0), group.index, count=1)


def test_groups_are_numbered_and_have_all_pixels() -> None:
    shape = ConvShape(images=1, size=(9, 7), channels=4, filters=16, kernel=(3, 3))

    def check(case: tuple[int, int, bool]) -> None:
        most, rows, runs_on = case
        layout = StagedLayout(shape, rows, choose_runs(shape), 16)
        groups = PixelGroups(layout, most, runs_on)
        target = supported_targets()[0]
        (counts,) = run(Census(groups, rows), target, np.zeros(groups.count, np.float32), threads=1)
        assert counts.min() >= 1
        assert counts.max() <= max(most, 1)
        assert counts.sum() == (layout.pixels if runs_on else rows * 7)

    check_each(product((1, 3, 7, 8, 15, 100), (1, 4, 9), (False, True)), check)


def test_all_of_a_block_is_prefetched_and_little_more() -> None:
    def check(case: tuple[int, int, tuple[int, int]]) -> None:
        rows, channels, group = case
        x = numbers(1, 9, 7, channels)
        made = replace(make_plain(supported_targets()[0], x, 512), rows=rows, group=group, has_tiles=False)
        (lines, parts), needed = made.loops.prefetched, -(-made.staged.block_words // 16)
        rounds = made.loops.product.rounds
        assert 1 <= parts <= made.loops.groups.count
        assert needed <= lines * parts * rounds < needed + lines * rounds
        assert (lines - 1) * made.loops.groups.count * rounds < needed

    check_each(product((1, 9), (4, 40, 512), ((1, 8), (7, 2), (14, 2), (5, 4))), check)


@every_arithmetic
def test_epilogue(target: Target) -> None:
    """A residual, a factor per channel and image, and a number, after the sums."""
    x, weight = numbers(2, 6, 7, 20), numbers(24, 20, 3, 3, seed=1)
    residual, factor, number = numbers(2, 6, 7, 24, seed=3), numbers(2, 24, seed=4), numbers(1, seed=5)
    operands = (
        EpilogueOperand(Broadcast.FULL, strides(6, 7, 24)),
        EpilogueOperand(Broadcast.CHANNEL, (24,)),
        EpilogueOperand(Broadcast.SCALAR),
    )
    expression = apply("add", apply("mul", apply("add", Leaf(0), Leaf(1)), Leaf(2)), Leaf(3))
    made = make_plain(target, x, 24, Epilogue(expression, operands))
    plain = expected(x, weight, None, (1, 1), (1, 1), padding=(2, 2))
    wanted = (plain + residual) * factor[:, None, None] + number
    out = run(
        made, target, x, *made.packing.pack(weight, None), np.zeros_like(plain), residual, factor, number
    )[3]
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@every_arithmetic
def test_what_is_not_finite_stays_where_it_belongs(target: Target) -> None:
    """NaN and infinities reach the windows that they lie in and no others; the largest float32 makes no infinity."""
    x, weight = numbers(1, 9, 20, 6), numbers(16, 6, 3, 3, seed=1)
    x[0, 2, 3, 1], x[0, 6, 10, 5], x[0, 8, 19, 0] = np.nan, np.inf, 3.4028235e38
    weight[:, 0] *= 1e-3
    made = make_plain(target, x, 16)
    with np.errstate(all="ignore"):
        wanted = expected(x, weight, None, (1, 1), (1, 1), padding=(2, 2))
    *_, out = run(made, target, x, *made.packing.pack(weight, None), np.zeros_like(wanted))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(out), np.isinf(wanted))
    finite = np.isfinite(wanted)
    assert np.abs(wanted[finite]).max() > 1e35
    np.testing.assert_allclose(out[finite], wanted[finite], rtol=1e-4, atol=1e-4)


@every_arithmetic
@pytest.mark.parametrize(("channels", "columns"), [(1, 40), (3, 37), (7, 16), (8, 3)])
def test_planes_of_channels(target: Target, channels: int, columns: int) -> None:
    """Channels that lie apart, each with its rows end to end, as images come."""
    x, weight, bias = (
        numbers(2, 9, columns, channels),
        numbers(20, channels, 3, 3, seed=1),
        numbers(20, seed=2),
    )
    planes = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    plain = make_plain(target, x, 20)
    strides_x = (channels * 9 * columns, columns, 1)
    made = replace(plain, strides=replace(plain.strides, x=strides_x), channel_step=9 * columns)
    assert can_stage_planes(made.staged.runs.pixel_words)
    wanted = expected(x, weight, bias, (1, 1), (1, 1), padding=(2, 2))
    *_, out = run(made, target, planes, *made.packing.pack(weight, bias), np.zeros_like(wanted))
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@every_arithmetic
@pytest.mark.parametrize("spread", [(2, 2), (1, 3)])
@pytest.mark.parametrize("filters", [5, 40])
def test_pixels_that_spread(target: Target, spread: tuple[int, int], filters: int) -> None:
    """A transposed convolution whose windows do not meet, with a residual."""
    x, bias = numbers(2, 5, 7, 12), numbers(filters, seed=2)
    weight = numbers(12, filters, *spread, seed=1)
    size = 5 * spread[0], 7 * spread[1]
    residual = numbers(2, *size, filters, seed=3)
    made = StagedConvolution(
        shape=ConvShape(images=2, size=(5, 7), channels=12, filters=filters),
        strides=ImageStrides(strides(5, 7, 12), strides(*size, filters)),
        padding=ImplicitPadding((5, 7), (0, 0)),
        rows=2,
        blocks=1,
        has_tiles=target.has_tiles,
        group=group_of(target, 3, 2),
        lanes=target.lanes,
        rounds=True,
        epilogue=Epilogue(
            apply("add", Leaf(0), Leaf(1)), (EpilogueOperand(Broadcast.FULL, strides(*size, filters)),)
        ),
        spread=spread,
    )
    rounded = rounded_to_bfloat16(x).transpose(0, 3, 1, 2), rounded_to_bfloat16(weight)
    y = transposed_convolve(*rounded, bias, spread, (0, 0), (0, 0), 1, (1, 1))
    wanted = y.transpose(0, 2, 3, 1) + residual
    packed = made.packing.pack(weight.transpose(2, 3, 1, 0).reshape(-1, 12, 1, 1), bias)
    out = run(made, target, x, *packed, np.zeros_like(residual), residual)[3]
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


def pairs_of(array: Array) -> Array:
    """Return an array rounded to bfloat16, two neighbours of the last axis to an element."""
    return np.ascontiguousarray(bfloat16_bits(array)).view(np.float32)


@every_arithmetic
@examples_of_kernels
@given(data=st.data())
def test_pairs_in_memory(target: Target, data: st.DataObject) -> None:
    """Input, output or both of bfloat16: the bits of the same kernel on float32, rounded."""
    kernel, stride = (data.draw(st.tuples(small, small)) for _ in range(2))
    padding = data.draw(st.sampled_from([(0, 0), (2, 2), (1, 3)]))
    size_x = kernel[0] + data.draw(st.integers(0, 4)), kernel[1] + data.draw(st.integers(0, 30))
    channels = data.draw(st.sampled_from([2, 6, 32, 34, 40, 66]))
    filters = data.draw(st.sampled_from([2, 16, 18, 32, 40, 66]))
    gap = 2 * data.draw(st.integers(0, 2))
    x, weight = numbers(2, *size_x, channels + gap), numbers(filters, channels, *kernel, seed=1)
    bias = numbers(filters, seed=2)
    spread = data.draw(st.sampled_from([(1, 1), (2, 3)])) if kernel == (1, 1) else (1, 1)
    weight = np.concatenate([weight + part for part in range(spread[0] * spread[1])])
    size = output_size(x, kernel, stride, (1, 1), padding)
    spread_size = size[0] * spread[0], size[1] * spread[1]
    residual = numbers(2, *spread_size, filters, seed=3)
    full = EpilogueOperand(Broadcast.FULL, strides(*spread_size, filters))
    plain = StagedConvolution(
        shape=ConvShape(
            images=2, size=size, channels=channels, filters=filters, kernel=kernel, stride=stride
        ),
        strides=ImageStrides(strides(*size_x, channels + gap), strides(*spread_size, filters)),
        padding=ImplicitPadding(size_x, (padding[0] // 2, padding[1] // 2)),
        rows=data.draw(st.integers(1, size[0])),
        blocks=data.draw(st.integers(1, 4)),
        has_tiles=target.has_tiles,
        group=group_of(target, data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))),
        lanes=target.lanes,
        rounds=True,
        epilogue=Epilogue(apply("add", Leaf(0), Leaf(1)), (full,)),
        spread=spread,
    )
    packed, empty = plain.packing.pack(weight, bias), np.zeros_like(residual)
    wanted = run(plain, target, x, *packed, empty, residual)[3]
    reads, stores = data.draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    strides_x = strides(*size_x, (channels + gap) // 2) if reads else plain.strides.x
    strides_out = strides(*spread_size, filters // 2) if stores else plain.strides.out
    made = replace(plain, strides=ImageStrides(strides_x, strides_out), rounds=not reads, stores_bf16=stores)
    there = pairs_of(empty) if stores else empty
    out = run(made, target, pairs_of(x) if reads else x, *packed, there, residual)[3]
    expected_bits = pairs_of(wanted) if stores else wanted
    np.testing.assert_array_equal(out.view(np.uint32), expected_bits.view(np.uint32))


@every_arithmetic
def test_maximum_of_pairs(target: Target) -> None:
    """The larger of bfloat16 in both halves of elements; NaN reaches the windows that it lies in."""

    def check(case: tuple[tuple[Pair, Pair, Pair], int]) -> None:
        (window, stride, padding), words = case
        x = rounded_to_bfloat16(numbers(2, 7, 9, 2 * words))
        x[0, 2, 3], x[1, 4, 5, 0], x[1, 5, 5, 1] = -np.inf, np.nan, np.inf
        wanted = largest_of_windows(x, window, stride, padding, lowest=-np.inf)
        kernel = pooling(target, x, words, window, stride, padding, is_bf16=True)
        _, out = run(kernel, target, pairs_of(x), np.zeros((*wanted.shape[:3], words), np.float32))
        numbers_out = (out.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(numbers_out, wanted)

    check_each(product(WINDOWS, (1, 5, 18)), check)


@dataclass(frozen=True)
class Pairing:
    """A kernel that rounds two vectors of numbers to pairs, and multiplies the pairs by themselves."""

    lanes: int
    chunks = 1
    scratch = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return line(2 * self.lanes), line(self.lanes, is_written=True), line(self.lanes, is_written=True)

    def emit(self, e: Emitter) -> None:
        numbers, pairs, squares = map(e.argument, range(3))
        pair = pair_up(e, e.load(numbers), e.load(numbers, e.lanes))
        e.store(pair, pairs)
        e.store(dot(e, pair, pair, e.splat(1.0)), squares)


@every_arithmetic
def test_pairs_are_rounded_as_numpy_rounds_them(target: Target) -> None:
    random = np.random.default_rng(0)
    kernel = Pairing(target.lanes)
    for seed in range(20):
        x = (random.standard_normal(2 * target.lanes) * 10.0 ** random.integers(-30, 30)).astype(np.float32)
        if seed % 2:
            x[random.permutation(x.size)[: len(SPECIAL)]] = SPECIAL[: x.size]
        space = np.zeros(target.lanes, np.float32)
        _, pairs, squares = run(kernel, target, x, space, space.copy())
        np.testing.assert_array_equal(pairs.view(np.uint16), bfloat16_bits(x))
        with np.errstate(all="ignore"):
            wanted = 1 + np.square(rounded_to_bfloat16(x)).reshape(-1, 2).sum(1)
        np.testing.assert_allclose(squares, wanted, rtol=1e-6)


def test_steps_are_as_few_as_the_channels_allow() -> None:
    def steps(channels: int, kernel: tuple[int, int], dilation: int = 1) -> int:
        shape = ConvShape(
            images=1, size=(1, 1), channels=channels, filters=1, kernel=kernel, dilation=(1, dilation)
        )
        runs = choose_runs(shape.in_words(2))
        assert 2 * runs.steps * runs.step_words * runs.count >= channels * kernel[1]
        return runs.count * runs.steps

    assert [steps(3, (7, 7)), steps(3, (7, 7), 2), steps(16, (3, 3)), steps(64, (3, 3))] == [1, 7, 2, 6]
    assert [steps(1, (1, 1)), steps(33, (1, 1)), steps(512, (1, 1))] == [1, 2, 16]


@pytest.mark.parametrize("target", [*supported_targets(), *bf16_targets()], ids=lambda target: target.name)
def test_speed_of_pairs_is_known(target: Target) -> None:
    assert 0.05 < bf16_speedup(target) < 20
