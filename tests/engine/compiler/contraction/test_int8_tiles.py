"""The convolution of integers in AMX tiles against sums of Python's integers, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.arithmetic import Int8
from engine.compiler.contraction.epilogue import NOTHING, Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.contraction.staged_convolution import StagedConvolution
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import target_named
from engine.quantization.tensor_scale import TensorScale
from tests.engine.compiler.contraction.test_int8_convolution import packed, summed
from tests.engine.compiler.harness import examples_of_kernels, run
from tests.engine.compiler.kernels.images import output_size, strides

AMX = target_named("amx")
small = st.integers(1, 3)


@examples_of_kernels
@given(data=st.data())
def test_any_shape(data: st.DataObject) -> None:
    kernel, stride = (data.draw(st.tuples(small, small)) for _ in range(2))
    channels = data.draw(st.sampled_from([1, 3, 4, 9, 64, 70]))
    filters = data.draw(st.sampled_from([1, 3, 16, 17, 40, 70]))
    rows, columns = (n + data.draw(st.integers(0, extra)) for n, extra in zip(kernel, (6, 20), strict=True))
    padding = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    images = data.draw(st.integers(1, 2))
    gap = data.draw(st.integers(0, 2))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = random.integers(0, 256, (images, rows, columns, channels)).astype(np.uint8)
    weight = random.integers(-127, 128, (filters, channels, *kernel)).astype(np.int8)
    scales = random.uniform(0.5, 2, (2, filters)).astype(np.float32)
    x_scale = TensorScale(0.5, data.draw(st.sampled_from([0, 3, 128, 255])))
    out_scale = data.draw(st.sampled_from([None, TensorScale(500.0, 0), TensorScale(3000.0, 131)]))
    size = output_size(x, kernel, stride, (1, 1), (2 * padding[0], 2 * padding[1]))
    out_words = filters if out_scale is None else -(-filters // 4)
    words = -(-channels // 4)
    is_fused = data.draw(st.booleans())
    other = random.integers(0, 256, (images, *size, filters)).astype(np.uint8)
    other_scale = TensorScale(700.0, 100)
    group = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    shape = ConvShape(
        images=images, size=size, channels=channels, filters=filters, kernel=kernel, stride=stride
    )
    chunk_rows = data.draw(st.integers(1, size[0]))
    blocks = -(-filters // (16 * group[1]))
    made = StagedConvolution(
        shape=shape,
        strides=ImageStrides(strides(rows, columns, words + gap), strides(*size, out_words)),
        padding=ImplicitPadding((rows, columns), padding),
        rows=chunk_rows,
        blocks=data.draw(st.integers(1, blocks)),
        has_tiles=True,
        group=group,
        lanes=AMX.lanes,
        epilogue=Epilogue(
            apply("add", Leaf(0), Leaf(1)),
            (EpilogueOperand(Broadcast.FULL, strides(*size, -(-filters // 4)), other_scale),),
        )
        if is_fused
        else NOTHING,
        prefetches_weights=data.draw(st.booleans()),
        arithmetic=Int8(x_scale),
        out_scale=out_scale,
    )
    wide = np.concatenate([packed(x), np.zeros((images, rows, columns, gap), np.float32)], axis=-1)
    arrays = [wide, *made.packing.pack(weight, scales), np.zeros((images, *size, out_words), np.float32)]
    results = run(made, AMX, *arrays, *([packed(other)] if is_fused else []))
    sums = summed(x.astype(np.int64) - x_scale.zero_point, weight, stride, padding, 1)
    expected = sums * scales[0] + scales[1]
    if is_fused:
        expected = expected + other_scale.real(other)
    if out_scale is None:
        np.testing.assert_array_equal(results[3], expected)
    else:
        given_integers = np.ascontiguousarray(results[3]).view(np.uint8)[..., :filters]
        np.testing.assert_array_equal(given_integers, out_scale.integers(expected))
