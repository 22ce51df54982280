"""The convolution of integers against sums of Python's integers, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.arithmetic import Int8
from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import NOTHING, Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target, host_target
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale
from tests.engine.compiler.emulation import INT8, WIDTHS
from tests.engine.compiler.harness import examples_of_kernels, run
from tests.engine.compiler.kernels.images import output_size, strides

every_arithmetic = pytest.mark.parametrize("target", [*WIDTHS, *INT8], ids=lambda target: target.name)
"""Runs a test once for each way to multiply integers that this machine has."""
small = st.integers(1, 3)


def packed(integers: Array) -> Array:
    """Return uint8 (images, rows, columns, channels) as words of four channels."""
    missing = -integers.shape[-1] % 4
    filled = np.pad(integers, ((0, 0), (0, 0), (0, 0), (0, missing)), constant_values=77)
    return np.ascontiguousarray(filled).view(np.float32)


def summed(
    steps: Array, weight: Array, stride: tuple[int, int], padding: tuple[int, int], groups: int
) -> Array:
    """Return sums of products of integers, float32 (images, rows, columns, filters)."""
    x = np.pad(steps, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0))).astype(np.int64)
    filters, channels, *kernel = weight.shape
    size = [(x.shape[1 + axis] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1)]
    out = np.zeros((len(x), *size, filters), np.int64)
    for row, column in np.ndindex(kernel[0], kernel[1]):
        part = x[
            :, row : row + size[0] * stride[0] : stride[0], column : column + size[1] * stride[1] : stride[1]
        ]
        part = part[:, : size[0], : size[1]].reshape(len(x), *size, groups, channels)
        w = weight[:, :, row, column].reshape(groups, -1, channels).astype(np.int64)
        out += np.einsum("nrcgi,goi->nrcgo", part, w).reshape(out.shape)
    return out.astype(np.float32)


@every_arithmetic
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any kernel, stride, groups, tile and partition; whole range of integers; float32 and integers as results."""
    kernel, stride = (data.draw(st.tuples(small, small)) for _ in range(2))
    groups = data.draw(st.integers(1, 3))
    channels = data.draw(st.integers(1, 9)) if groups == 1 else data.draw(st.sampled_from([4, 8]))
    filters = data.draw(st.sampled_from([1, 3, 8, 16, 17, 40] if groups == 1 else [4, 8, 16, 20]))
    rows, columns = (n + data.draw(st.integers(0, 9)) for n in kernel)
    is_staged = data.draw(st.booleans())
    padding = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) if is_staged else (0, 0)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    images = data.draw(st.integers(1, 2))
    x = random.integers(0, 256, (images, rows, columns, channels * groups)).astype(np.uint8)
    weight = random.integers(-127, 128, (filters * groups, channels, *kernel)).astype(np.int8)
    scales = random.uniform(0.5, 2, (2, filters * groups)).astype(np.float32)
    x_scale = TensorScale(0.5, data.draw(st.sampled_from([0, 3, 128, 255])))
    out_scale = data.draw(st.sampled_from([None, TensorScale(500.0, 0), TensorScale(3000.0, 131)]))
    size = output_size(x, kernel, stride, (1, 1), (2 * padding[0], 2 * padding[1]))
    out_words = filters * groups if out_scale is None else -(-filters * groups // 4)
    made = DirectConvolution(
        shape=ConvShape(
            images=images,
            size=size,
            channels=-(-channels // 4),
            filters=filters,
            kernel=kernel,
            stride=stride,
            groups=groups,
        ),
        strides=ImageStrides(strides(rows, columns, -(-channels * groups // 4)), strides(*size, out_words)),
        tile=Tile(data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))),
        chunk=ChunkSize(
            data.draw(st.integers(1, size[0])), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
        ),
        lanes=target.lanes,
        padding=ImplicitPadding((rows, columns), padding) if is_staged else None,
        arithmetic=Int8(x_scale),
        out_scale=out_scale,
    )
    sums = summed(x.astype(np.int64) - x_scale.zero_point, weight, stride, padding, groups)
    expected = sums * scales[0] + scales[1]
    *_, out = run(
        made,
        target,
        packed(x),
        *made.packing.pack(weight, scales),
        np.zeros((images, *size, out_words), np.float32),
    )
    if out_scale is None:
        np.testing.assert_array_equal(out, expected)
    else:
        given = np.ascontiguousarray(out).view(np.uint8)[..., : filters * groups]
        np.testing.assert_array_equal(given, out_scale.integers(expected))


@every_arithmetic
def test_operands_of_the_epilogue_may_be_integers(target: Target) -> None:
    random = np.random.default_rng(0)
    x, other = (random.integers(0, 256, (1, 3, 5, 20)).astype(np.uint8) for _ in range(2))
    weight = random.integers(-127, 128, (20, 20, 1, 1)).astype(np.int8)
    scales = random.uniform(0.5, 2, (2, 20)).astype(np.float32)
    x_scale, other_scale, out_scale = TensorScale(0.5, 7), TensorScale(900.0, 100), TensorScale(2000.0, 90)
    made = DirectConvolution(
        shape=ConvShape(images=1, size=(3, 5), channels=5, filters=20),
        strides=ImageStrides(strides(3, 5, 5), strides(3, 5, 5)),
        tile=Tile(3, 2),
        chunk=ChunkSize(1, 2, 2),
        lanes=target.lanes,
        epilogue=Epilogue(
            apply("relu", apply("add", Leaf(0), Leaf(1))),
            (EpilogueOperand(Broadcast.FULL, strides(3, 5, 5), other_scale),),
        ),
        arithmetic=Int8(x_scale),
        out_scale=out_scale,
    )
    *_, out, _ = run(
        made,
        target,
        packed(x),
        *made.packing.pack(weight, scales),
        np.zeros((1, 3, 5, 5), np.float32),
        packed(other),
    )
    sums = summed(x.astype(np.int64) - 7, weight, (1, 1), (0, 0), 1)
    expected = np.maximum(sums * scales[0] + scales[1] + other_scale.real(other), 0)
    np.testing.assert_array_equal(np.ascontiguousarray(out).view(np.uint8), out_scale.integers(expected))


def test_weights_without_scales_are_a_mistake() -> None:
    made = DirectConvolution(
        shape=ConvShape(images=1, size=(1, 1), channels=1, filters=4),
        strides=ImageStrides((1, 1, 1), (4, 4, 4)),
        tile=Tile(1, 1),
        chunk=ChunkSize(1, 1, 1),
        lanes=host_target().lanes,
        epilogue=NOTHING,
        arithmetic=Int8(TensorScale(1.0, 0)),
    )
    with pytest.raises(ValueError, match="integers without scales"):
        made.packing.pack(np.zeros((4, 4, 1, 1), np.int8), None)
