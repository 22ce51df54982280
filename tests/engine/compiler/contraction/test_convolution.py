"""The direct and the streamed convolution kernels against the numpy routine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.streamed_convolution import StreamedConvolution
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import ACTIVATIONS, convolved, numbers, output_size, strides

small = st.integers(1, 3)


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any kernel, stride, dilation, groups and tile; filters beside whole vectors; any partition into chunks."""
    kernel, stride, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    rows, columns = (n + data.draw(st.integers(0, extra)) for n, extra in zip(least, (4, 20), strict=True))
    groups = data.draw(st.integers(1, 3))
    channels, filters = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([1, 3, 8, 16, 17, 40]))
    x = numbers(data.draw(st.integers(1, 2)), rows, columns, channels * groups)
    weight = numbers(filters * groups, channels, *kernel, seed=1)
    bias = numbers(filters * groups, seed=2) if data.draw(st.booleans()) else None
    size = output_size(x, kernel, stride, dilation)
    made = DirectConvolution(
        shape=ConvShape(
            images=len(x),
            size=size,
            channels=channels,
            filters=filters,
            kernel=kernel,
            stride=stride,
            dilation=dilation,
            groups=groups,
        ),
        strides=ImageStrides(strides(*x.shape[1:]), strides(*size, filters * groups)),
        tile=Tile(data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))),
        chunk=ChunkSize(
            data.draw(st.integers(1, size[0])), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
        ),
        lanes=target.lanes,
        prefetches_weights=data.draw(st.booleans()),
        is_dynamic=data.draw(st.booleans()),
    )
    expected = convolved(x, weight, bias, stride, dilation, groups)
    *_, out = run(made, target, x, *made.packing.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@every_target
@examples_of_kernels
@given(data=st.data())
def test_staged_padding(target: Target, data: st.DataObject) -> None:
    """Padding that is not in memory, even more than the kernel reads of a row; pixels of the input may lie apart."""
    kernel = data.draw(st.tuples(small, small))
    stride = data.draw(st.tuples(small, st.sampled_from([1, 2, 3, 20])))
    padding = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 12)))
    rows, columns = data.draw(st.integers(3, 9)), data.draw(st.integers(3, 20))
    channels, gap = data.draw(st.integers(1, 20)), data.draw(st.integers(0, 3))
    wide = numbers(2, rows, columns, channels + gap)
    x = wide[..., :channels]
    weight, bias = numbers(5, channels, *kernel, seed=1), numbers(5, seed=2)
    size = output_size(x, kernel, stride, (1, 1), padding)
    made = DirectConvolution(
        shape=ConvShape(images=2, size=size, channels=channels, filters=5, kernel=kernel, stride=stride),
        strides=ImageStrides(strides(rows, columns, channels + gap), strides(*size, 5)),
        tile=Tile(4, 1),
        chunk=ChunkSize(data.draw(st.integers(1, size[0])), 100, 100),
        lanes=target.lanes,
        padding=ImplicitPadding((rows, columns), (padding[0] // 2, padding[1] // 2)),
    )
    expected = convolved(x, weight, bias, stride, (1, 1), 1, padding)
    *_, out = run(made, target, wide, *made.packing.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@every_target
@examples_of_kernels
@given(data=st.data())
def test_streamed(target: Target, data: st.DataObject) -> None:
    """Blocks of filters over all pixels, partial sums in scratch memory."""
    kernel, stride, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    least = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    rows, columns = (n + data.draw(st.integers(0, 6)) for n in least)
    channels, filters = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([1, 8, 16, 17, 40, 64]))
    x = numbers(data.draw(st.integers(1, 2)), rows, columns, channels)
    weight, bias = numbers(filters, channels, *kernel, seed=1), numbers(filters, seed=2)
    size = output_size(x, kernel, stride, dilation)
    made = StreamedConvolution(
        shape=ConvShape(
            images=len(x),
            size=size,
            channels=channels,
            filters=filters,
            kernel=kernel,
            stride=stride,
            dilation=dilation,
        ),
        strides=ImageStrides(strides(*x.shape[1:]), strides(*size, filters)),
        tile=Tile(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 2))),
        lanes=target.lanes,
    )
    expected = convolved(x, weight, bias, stride, dilation, 1)
    *_, out = run(made, target, x, *made.packing.pack(weight, bias), np.zeros_like(expected))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


SUM = apply("add", apply("mul", Leaf(0), Leaf(1)), apply("sub", Leaf(2), Leaf(3)))


@every_target
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_epilogue_reads_every_kind_of_operand(target: Target, streamed: bool, activation: str) -> None:
    x, weight = numbers(2, 5, 6, 7), numbers(19, 7, 3, 3, seed=1)
    scale, shift = numbers(2, 19, seed=3), numbers(1, seed=4)
    expected = convolved(x, weight, None)
    other = numbers(*expected.shape, seed=5)
    size = expected.shape[1], expected.shape[2]
    operands = (
        EpilogueOperand(Broadcast.CHANNEL, (19,)),
        EpilogueOperand(Broadcast.FULL, strides(*size, 19)),
        EpilogueOperand(Broadcast.SCALAR),
    )
    epilogue = Epilogue(apply(activation, SUM), operands)
    made: DirectConvolution | StreamedConvolution = DirectConvolution(
        shape=ConvShape(images=2, size=size, channels=7, filters=19, kernel=(3, 3)),
        strides=ImageStrides(strides(5, 6, 7), strides(*size, 19)),
        tile=Tile(3, 1),
        chunk=ChunkSize(2, 1, 1),
        lanes=target.lanes,
        epilogue=epilogue,
    )
    if streamed:
        made = StreamedConvolution(
            shape=made.shape,
            strides=made.strides,
            tile=made.tile,
            lanes=target.lanes,
            epilogue=epilogue,
        )
    arrays = [x, *made.packing.pack(weight, None), np.zeros_like(expected), scale, other, shift]
    out = run(made, target, *arrays)[3]
    wanted = ACTIVATIONS[activation](expected * scale[:, None, None] + (other - shift))
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@every_target
def test_results_do_not_depend_on_the_tile(target: Target) -> None:
    """Every sum is made in the same order, whatever the tile and the chunks: the same to the bit."""
    x, weight, bias = numbers(1, 6, 11, 13), numbers(33, 13, 3, 3, seed=1), numbers(33, seed=2)
    first = DirectConvolution(
        shape=ConvShape(images=1, size=(4, 9), channels=13, filters=33, kernel=(3, 3)),
        strides=ImageStrides(strides(6, 11, 13), strides(4, 9, 33)),
        tile=Tile(4, 1),
        chunk=ChunkSize(4, 9, 9),
        lanes=target.lanes,
    )
    results = [
        run(made, target, x, *made.packing.pack(weight, bias), np.zeros((1, 4, 9, 33), np.float32))[3]
        for made in (first, replace(first, tile=Tile(3, 2), chunk=ChunkSize(1, 1, 1)))
    ]
    np.testing.assert_array_equal(results[0], results[1])
