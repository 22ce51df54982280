"""Kernels of integers with a runtime number of rows: the bits of numpy's layers, at any number of rows."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.arithmetic import Int8
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.int8 import ZERO
from engine.compiler.emit.jit import general
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.compiler.kernels.row_quantization import RowQuantization
from engine.dtypes import Array
from engine.quantization.layer import DYNAMIC_LEVELS, dynamic_steps
from engine.quantization.tensor_scale import TensorScale
from tests.cases import check_each
from tests.engine.compiler.contraction.test_int8_convolution import every_arithmetic, packed
from tests.engine.compiler.harness import examples_of_kernels, run

ROWS = (1, 2, 3, 5, 7, 16, 17, 33, 61, 130)
"""Below a tile, whole ones, and all kinds of rests."""
EXTREMES = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-38, 0.0)


def words(channels: int) -> int:
    return -(-channels // 4)


def linear(
    target: Target,
    rows: int,
    channels: int,
    filters: int,
    tile: Tile = Tile(6, 4),  # noqa: B008  # it never changes
    chunk: ChunkSize = ChunkSize(1, 2, 1),  # noqa: B008
) -> DirectConvolution:
    """Return a layer that multiplies by the scales of rows, adds a bias and a tensor, and keeps what is positive."""
    operands = (
        EpilogueOperand(Broadcast.PIXEL, (0, 0, 1)),
        EpilogueOperand(Broadcast.CHANNEL, (0,)),
        EpilogueOperand(Broadcast.FULL, (0, 0, filters)),
    )
    scaled = apply("add", apply("mul", Leaf(0), Leaf(1)), Leaf(2))
    return DirectConvolution(
        shape=ConvShape(images=1, size=(1, rows), channels=words(channels), filters=filters),
        strides=ImageStrides((0, 0, words(channels)), (0, 0, filters)),
        tile=tile,
        chunk=chunk,
        lanes=target.lanes,
        epilogue=Epilogue(apply("relu", apply("add", scaled, Leaf(3))), operands),
        prefetches_weights=filters > tile.vectors * target.lanes,
        arithmetic=Int8(TensorScale(1.0, ZERO)),
        is_dynamic=True,
    )


def check_linear(kernel: DirectConvolution, target: Target, channels: int, threads: int = 3) -> None:
    (_, rows), filters = kernel.shape.size, kernel.shape.filters
    random = np.random.default_rng(rows + channels)
    x = random.integers(ZERO - DYNAMIC_LEVELS, ZERO + DYNAMIC_LEVELS + 1, (rows, channels)).astype(np.uint8)
    weight = random.integers(-127, 128, (filters, channels)).astype(np.int8)
    scales = random.uniform(0.5, 2, filters).astype(np.float32)
    row_scales, bias, added = (
        random.standard_normal(shape).astype(np.float32) for shape in ((rows, 1), (filters,), (rows, filters))
    )
    sums = ((x.astype(np.int64) - ZERO) @ weight.T.astype(np.int64)).astype(np.float32)
    expected = np.maximum(sums * scales * row_scales + bias + added, 0)
    numbers = np.stack([scales, np.zeros_like(scales)])
    weights = kernel.packing.pack(weight[:, :, None, None], numbers)
    out = np.zeros((rows, filters), np.float32)
    result = run(
        kernel, target, packed(x[None, None]), *weights, out, row_scales, bias, added, threads=threads
    )[3]
    np.testing.assert_array_equal(result, expected)


@every_arithmetic
def test_linear(target: Target) -> None:
    check_each(ROWS, lambda rows: check_linear(linear(target, rows, 42, 97), target, 42))


@every_arithmetic
@examples_of_kernels
@given(data=st.data())
def test_linear_of_any_extents(target: Target, data: st.DataObject) -> None:
    """Any number of rows, channels and filters; any tile, partition and number of threads."""
    draw = partial(st.integers, 1)
    rows, channels = data.draw(draw(70)), data.draw(draw(70))
    filters = data.draw(st.sampled_from([1, 3, 4, 15, 16, 17, 40, 64, 65, 130]))
    tile = Tile(data.draw(draw(9)), data.draw(draw(4)))
    chunk = ChunkSize(1, data.draw(draw(4)), data.draw(draw(4)))
    kernel = linear(target, rows, channels, filters, tile, chunk)
    check_linear(kernel, target, channels, data.draw(draw(3)))


def quantization(target: Target, rows: int, columns: int, margin: int = 0) -> RowQuantization:
    return RowQuantization(
        rows=rows,
        columns=columns,
        x_step=columns + margin,
        out_step=words(columns) + margin,
        lanes=target.lanes,
        is_dynamic=True,
    )


def check_quantization(target: Target, x: Array, columns: int) -> None:
    rows, step = x.shape
    kernel = quantization(target, rows, columns, step - columns)
    out = np.zeros((rows, words(columns) + step - columns), np.float32)
    _, integers, scales = run(kernel, target, x, out, np.zeros(rows, np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        steps, expected = dynamic_steps(x[:, :columns])
    unpacked = np.ascontiguousarray(integers).view(np.uint8)[:, :columns]
    np.testing.assert_array_equal(unpacked.astype(np.float32) - ZERO, steps)
    np.testing.assert_array_equal(scales, expected[:, 0])


@every_arithmetic
@examples_of_kernels
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 70),
    margin=st.integers(0, 3),
    extreme=st.sampled_from([None, *EXTREMES]),
    power=st.integers(-32, 30),
)
def test_rows_become_integers(
    target: Target, rows: int, columns: int, margin: int, extreme: float | None, power: int
) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns + margin)) * 10.0**power
    if extreme is not None:
        x[rows // 2, columns // 2] = extreme
    check_quantization(target, x.astype(np.float32), columns)


@every_arithmetic
def test_many_rows_are_shared_by_threads(target: Target) -> None:
    x = np.random.default_rng(0).standard_normal((101, 900)).astype(np.float32)
    assert quantization(target, *x.shape).chunks > 1
    check_quantization(target, x, 900)


@every_arithmetic
def test_one_code_serves_all_numbers_of_rows(target: Target) -> None:
    assert len({general(linear(target, rows, 42, 97)) for rows in ROWS}) == 1
    assert len({general(quantization(target, rows, 42)) for rows in ROWS}) == 1
