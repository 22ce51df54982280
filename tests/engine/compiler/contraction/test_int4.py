"""Linear layers with weights of 4 bits: the bits of float32 kernels on the dequantized weights, and numpy's results."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.arithmetic import FLOAT32
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.int4 import Int4
from engine.compiler.contraction.shapes import ConvShape, ImageStrides
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.jit import general
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.dtypes import Array
from engine.quantization.int4 import GROUP, int4_weights, rounded_to_int4
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import numbers


def linear(target: Target, rows: int, channels: int, filters: int, tile: Tile) -> DirectConvolution:
    """Return a layer that adds a tensor, and keeps what is positive."""
    operand = EpilogueOperand(Broadcast.FULL, (0, 0, filters))
    return DirectConvolution(
        shape=ConvShape(images=1, size=(1, rows), channels=channels, filters=filters),
        strides=ImageStrides((0, 0, channels), (0, 0, filters)),
        tile=tile,
        chunk=ChunkSize(1, 2, 1),
        lanes=target.lanes,
        epilogue=Epilogue(apply("relu", apply("add", Leaf(0), Leaf(1))), (operand,)),
        arithmetic=Int4(channels),
    )


def weights_of(filters: int, channels: int) -> Array:
    """Return weights whose groups differ in size by orders of magnitude, one of them 0."""
    weight = numbers(filters, channels, seed=1) * np.float32(10) ** numbers(
        filters, channels // GROUP, seed=2
    ).repeat(GROUP, axis=1)
    weight[filters // 2, :GROUP] = 0
    return rounded_to_int4(weight)


def computed(kernel: DirectConvolution, target: Target, threads: int, has_bias: bool = True) -> list[Array]:
    """Return the results of a kernel, and numpy's."""
    (_, rows), filters, channels = kernel.shape.size, kernel.shape.filters, kernel.shape.channels
    x, added = numbers(rows, channels), numbers(rows, filters, seed=3)
    weight, bias = weights_of(filters, channels), numbers(filters, seed=4) if has_bias else None
    out = np.zeros((rows, filters), np.float32)
    packed = kernel.packing.pack(weight[:, :, None, None], bias)
    result = run(kernel, target, x, *packed, out, added, threads=threads)[3]
    exact = x.astype(np.float64) @ weight.T.astype(np.float64) + (0 if bias is None else bias)
    return [result, np.maximum(exact + added, 0)]


def check(kernel: DirectConvolution, target: Target, threads: int, has_bias: bool = True) -> Array:
    """Compare a kernel with numpy, whose sums are exact; returns the results."""
    result, exact = computed(kernel, target, threads, has_bias)
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=2e-6 * np.abs(exact).max())
    return result


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_extents(target: Target, data: st.DataObject) -> None:
    """One tile of rows or several, a runtime number of them; any tile, partition and number of threads."""
    draw = partial(st.integers, 1)
    rows, channels = data.draw(draw(40)), GROUP * data.draw(draw(4))
    filters = data.draw(st.sampled_from([1, 3, 15, 16, 17, 40, 65, 130]))
    kernel = replace(
        linear(target, rows, channels, filters, Tile(data.draw(draw(7)), data.draw(draw(4)))),
        chunk=ChunkSize(1, data.draw(draw(4)), data.draw(draw(4))),
        is_dynamic=data.draw(st.booleans()),
    )
    check(kernel, target, data.draw(draw(3)), data.draw(st.booleans()))


@every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 3, 23])
def test_threads(target: Target, rows: int, threads: int) -> None:
    kernel = linear(target, rows, 7 * GROUP, 211, Tile(3, 2))
    plain = check(replace(kernel, arithmetic=FLOAT32), target, threads)
    np.testing.assert_array_equal(check(kernel, target, threads), plain)


@every_target
def test_one_code_serves_all_numbers_of_rows(target: Target) -> None:
    kernels = (linear(target, rows, GROUP, 50, Tile(3, 2)) for rows in (1, 2, 30))
    assert len({general(replace(kernel, is_dynamic=True)) for kernel in kernels}) == 1


@every_target
def test_weights_take_an_eighth_of_float32(target: Target) -> None:
    kernel = linear(target, 1, 8 * GROUP, 4 * target.lanes, Tile(1, 4))
    weight, scales = kernel.packing.pack(weights_of(4 * target.lanes, 8 * GROUP)[:, :, None, None], None)
    assert weight.nbytes * 8 == 4 * 8 * GROUP * 4 * target.lanes
    assert scales.size == (1 + 8) * 4 * target.lanes


@given(
    filters=st.integers(1, 70), groups=st.integers(1, 5), lanes=st.sampled_from([4, 8, 16]), data=st.data()
)
def test_packed_weights_hold_all_integers(filters: int, groups: int, lanes: int, data: st.DataObject) -> None:
    """Each word of a block has the eight channels of a filter, the first lowest; absent filters are 0."""
    vectors = data.draw(st.integers(1, 4))
    channels, width = groups * GROUP, vectors * lanes
    integers = np.random.default_rng(filters).integers(-8, 8, (filters, channels))
    integers[:, ::GROUP] = -8  # which the largest weight of a group becomes
    scales = np.exp2(np.random.default_rng(groups).integers(-20, 20, (filters, groups))).astype(np.float32)
    weight = integers.astype(np.float32) * scales.repeat(GROUP, axis=1)
    kernel = replace(
        DirectConvolution(
            shape=ConvShape(images=1, size=(1, 1), channels=channels, filters=filters),
            strides=ImageStrides((0, 0, channels), (0, 0, filters)),
            tile=Tile(1, vectors),
            chunk=ChunkSize(1, 1, 1),
            lanes=lanes,
        ),
        arithmetic=Int4(channels),
    )
    packed, filter_numbers = kernel.packing.pack(weight[:, :, None, None], None)
    words = packed.view(np.uint32).reshape(-1, channels // 8, width)
    count = len(words) * width
    found = np.stack([(words >> np.uint32(4 * place)) & np.uint32(15) for place in range(8)], axis=2)
    by_filter = found.transpose(0, 3, 1, 2).reshape(count, channels).astype(np.int64)
    np.testing.assert_array_equal(np.where(by_filter > 7, by_filter - 16, by_filter)[:filters], integers)
    assert not by_filter[filters:].any()
    found_scales = filter_numbers.reshape(1 + groups, count)
    np.testing.assert_array_equal(found_scales[1:, :filters], scales.T)
    assert not found_scales[0].any()


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=GROUP, max_size=GROUP))
def test_rounding_is_to_the_nearest_and_idempotent(values: list[float]) -> None:
    weight = np.array([values], np.float32)
    integers, scales = int4_weights(weight)
    assert integers.min() >= -8
    assert integers.max() <= 7
    rounded = rounded_to_int4(weight)
    np.testing.assert_array_equal(rounded, integers * scales)
    np.testing.assert_array_equal(rounded_to_int4(rounded), rounded)
    again, scales_again = int4_weights(rounded)
    np.testing.assert_array_equal(again * scales_again, rounded)
    step, exact = np.abs(scales.astype(np.float64)), weight.astype(np.float64)
    distance = np.abs(rounded - exact) / step
    assert (
        distance <= np.where(exact / scales > 7, 1.0, 0.5) + 1e-6
    ).all()  # 8 steps are beyond the integers


def test_weights_are_those_of_ggml() -> None:
    """A group by hand: the largest magnitude becomes -8, and the others are counted in its eighths."""
    weight = np.zeros((2, GROUP), np.float32)
    weight[0, :6] = 4, 2, -4, 0.26, -0.24, 0.75
    weight[1, :3] = -16, 15, 3
    integers, scales = int4_weights(weight)
    np.testing.assert_array_equal(scales, [[-0.5], [2]])
    np.testing.assert_array_equal(integers[0, :6], [-8, -4, 7, -1, 0, -2])
    np.testing.assert_array_equal(integers[1, :3], [-8, 7, 2])
