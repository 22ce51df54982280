"""The depthwise convolution kernel against the numpy routine, over shapes, windows, padding and epilogues."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.epilogue import NOTHING, Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.compiler.kernels.depthwise import Depthwise
from engine.dtypes import Array
from engine.kernels.convolution import convolve
from tests.cases import check_each
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import Pair, numbers, output_size, strides


def kernel_for(
    target: Target,
    x: Array,
    kernel: Pair,
    stride: Pair = (1, 1),
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
    epilogue: Epilogue = NOTHING,
    threads: int = 1,
    depth: int = 1,
    is_dynamic: bool = False,
) -> Depthwise:
    """Return the tuned kernel for an input (images, rows, columns, channels) without gaps, `depth` channels a group."""
    images, rows, columns, channels = x.shape
    size = output_size(x, kernel, stride, dilation, (sum(padding[0]), sum(padding[1])))
    return Depthwise.tuned(
        target,
        shape=ConvShape(
            images=images,
            size=size,
            channels=depth,
            filters=depth,
            kernel=kernel,
            stride=stride,
            dilation=dilation,
            groups=channels // depth,
        ),
        padding=ImplicitPadding((rows, columns), (padding[0][0], padding[1][0])),
        strides=ImageStrides(strides(rows, columns, channels), strides(*size, channels)),
        threads=threads,
        epilogue=epilogue,
        is_dynamic=is_dynamic,
    )


def reference(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: tuple[Pair, Pair], dilation: Pair
) -> Array:
    """Return the numpy routine's result, channels last; the weight says how many channels a group has."""
    groups = x.shape[3] // weight.shape[1]
    y = convolve(x.transpose(0, 3, 1, 2), weight, bias, stride, padding, dilation, groups)
    return np.ascontiguousarray(y.transpose(0, 2, 3, 1))


small = st.integers(1, 3)
pads = st.tuples(st.integers(0, 4), st.integers(0, 4))


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any kernel, stride, padding and dilation, images of a pixel, channels beside whole vectors, in groups."""
    kernel, stride, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    padding = data.draw(st.tuples(pads, pads))
    least = [max(1, (k - 1) * d + 1 - sum(p)) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    rows, columns = (n + data.draw(st.integers(0, extra)) for n, extra in zip(least, (5, 30), strict=True))
    depth = data.draw(st.sampled_from([depth for depth in (1, 2, 4, 8) if depth < target.lanes]))
    channels = depth * data.draw(st.sampled_from([1, 3, 4, 8, 15, 16, 17, 35]))
    x = numbers(data.draw(st.integers(1, 2)), rows, columns, channels)
    weight, bias = numbers(channels, depth, *kernel, seed=1), numbers(channels, seed=2)
    expected = reference(x, weight, bias, stride, padding, dilation)
    is_dynamic = data.draw(st.booleans())
    if is_dynamic:  # its padding is in memory
        x, padding = np.pad(x, ((0, 0), *padding, (0, 0))), ((0, 0), (0, 0))
    made = kernel_for(target, x, kernel, stride, padding, dilation, depth=depth, is_dynamic=is_dynamic)
    made = replace(
        made,
        rows=data.draw(st.integers(1, made.rows)),
        vectors=data.draw(st.integers(1, made.vectors)),
        along_memory=data.draw(st.booleans()),
    )
    *_, out = run(made, target, x, *made.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@every_target
@pytest.mark.parametrize(
    ("channels", "size", "kernel", "stride"), [(24, 20, 5, 1), (40, 9, 5, 2), (8, 33, 3, 2)]
)
def test_layers_of_networks(target: Target, channels: int, size: int, kernel: int, stride: int) -> None:
    """Windows with padding on all sides, wide enough for tiles in the middle."""
    x, weight = numbers(1, size, size, channels), numbers(channels, 1, kernel, kernel, seed=1)
    padding = ((kernel // 2, kernel // 2),) * 2
    made = kernel_for(target, x, (kernel, kernel), (stride, stride), padding)
    expected = reference(x, weight, None, (stride, stride), padding, (1, 1))
    *_, out = run(made, target, x, *made.pack(weight, None), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@every_target
def test_epilogue_reads_operands_at_their_place(target: Target) -> None:
    """A full, a per-channel and a scalar operand."""
    x, weight, bias = numbers(2, 5, 11, 19), numbers(19, 1, 3, 3, seed=1), numbers(19, seed=2)
    full, channel, scalar = numbers(2, 5, 11, 19, seed=3), numbers(2, 19, seed=4), numbers(1, seed=5)
    operands = (
        EpilogueOperand(Broadcast.FULL, (5 * 11 * 19, 11 * 19, 19)),
        EpilogueOperand(Broadcast.CHANNEL, (19,)),
        EpilogueOperand(Broadcast.SCALAR),
    )
    scaled = apply("mul", apply("relu", Leaf(0)), Leaf(2))
    epilogue = Epilogue(apply("add", apply("add", scaled, Leaf(1)), Leaf(3)), operands)
    padding = ((1, 1), (1, 1))
    made = kernel_for(target, x, (3, 3), padding=padding, epilogue=epilogue)
    y = reference(x, weight, bias, (1, 1), padding, (1, 1))
    expected = np.maximum(y, 0) * channel[:, None, None] + full + scalar
    packed = made.pack(weight, bias)
    out = run(made, target, x, *packed, np.zeros_like(full), full, channel, scalar)[3]
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@every_target
def test_reads_and_writes_part_of_wider_tensors(target: Target) -> None:
    """Strides wider than the channels: what lies between stays as it was."""
    wide, weight = numbers(1, 6, 10, 23), numbers(7, 1, 3, 3, seed=1)
    expected = reference(wide[..., :7], weight, None, (1, 1), ((1, 1), (1, 1)), (1, 1))
    made = kernel_for(target, wide[..., :7], (3, 3), padding=((1, 1), (1, 1)))
    made = replace(made, strides=ImageStrides((6 * 10 * 23, 10 * 23, 23), (6 * 10 * 29, 10 * 29, 29)))
    *_, out = run(made, target, wide, *made.pack(weight, None), np.full((1, 6, 10, 29), 7, np.float32))
    np.testing.assert_allclose(out[..., :7], expected, rtol=1e-4, atol=1e-5)
    assert (out[..., 7:] == 7).all()


@every_target
def test_nan_and_infinity_go_on(target: Target) -> None:
    """They reach the outputs whose windows hold them, and no others."""
    x, weight = numbers(1, 6, 12, 5), np.abs(numbers(5, 1, 3, 3, seed=1)) + 1
    x[0, 2, 3, 1], x[0, 4, 8, 2] = np.nan, np.inf
    padding = ((1, 1), (1, 1))
    made = kernel_for(target, x, (3, 3), padding=padding, epilogue=Epilogue(apply("relu", Leaf(0))))
    expected = np.maximum(reference(x, weight, None, (1, 1), padding, (1, 1)), 0)
    *_, out = run(made, target, x, *made.pack(weight, None), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_large_layers_have_chunks_for_threads_and_small_ones_do_not(threads: int) -> None:
    """Work is split where it is worth it, and as much of it is for each thread."""
    target, pads = Target("avx512", 16, 32, True, "", ""), ((1, 1), (1, 1))
    large = kernel_for(target, np.empty((1, 112, 112, 32), np.float32), (3, 3), padding=pads, threads=threads)
    small = kernel_for(target, np.empty((1, 7, 7, 96), np.float32), (3, 3), padding=pads, threads=threads)
    assert large.chunks % threads == 0
    assert small.chunks == 1


@every_target
def test_shares_of_threads_are_the_whole(target: Target) -> None:
    """Rows and channels that threads do not divide evenly."""

    def check(case: tuple[int, tuple[int, int]]) -> None:
        threads, (channels, rows) = case
        x, weight = numbers(1, rows, 27, channels), numbers(channels, 1, 3, 3, seed=1)
        padding = ((1, 1), (1, 1))
        made = kernel_for(target, x, (3, 3), padding=padding, threads=threads)
        assert made.chunks > 1
        expected = reference(x, weight, None, (1, 1), padding, (1, 1))
        *_, out = run(made, target, x, *made.pack(weight, None), np.zeros_like(expected))
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)

    check_each(product((2, 3, 4), ((40, 40), (600, 7), (35, 24))), check)
