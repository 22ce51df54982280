"""Kernels of integers but convolutions: conversions, pooling, depthwise convolution; bit for bit."""

from itertools import product

import numpy as np
import pytest

from engine.compiler.contraction.shapes import ConvShape, ImageStrides, ImplicitPadding
from engine.compiler.emit.target import Target, supported_targets
from engine.compiler.kernels.conversion import ConversionKernel
from engine.compiler.kernels.depthwise import Depthwise
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale
from tests.cases import check_each
from tests.engine.compiler.contraction.test_int8_convolution import every_arithmetic, packed, summed
from tests.engine.compiler.harness import run
from tests.engine.compiler.kernels.images import Pair, output_size, strides
from tests.engine.compiler.kernels.windows import WINDOWS, largest_of_windows, pooling

SCALE = TensorScale(0.05, 90)
SUMMED = TensorScale(0.05, 91, rounds_sum=True)
SIGNED = TensorScale(1.0, 128, rounds_sum=True, lowest=-128)
EXTREMES = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.025, -0.025, 0.075], np.float32)


def unpacked(words: Array, channels: int) -> Array:
    return np.ascontiguousarray(words).view(np.uint8)[..., :channels]


@every_arithmetic
def test_float32_becomes_integers(target: Target) -> None:
    sizes = ((1, 5), (3, 37), (4, 16), (7, 3), (16, 2), (35, 19))
    cases = product(sizes, (False, True), (SCALE, SUMMED, SIGNED))
    check_each(cases, lambda case: check_quantize(target, *case))


def check_quantize(target: Target, size: Pair, is_planes: bool, scale: TensorScale) -> None:
    channels, columns = size
    x = (np.random.default_rng(0).standard_normal((2, 3, columns, channels)) * 4).astype(np.float32)
    x.reshape(-1)[: min(x.size, 8)] = EXTREMES[: min(x.size, 8)]
    if scale is SIGNED:
        x.reshape(-1)[-2:] = 0.5000001, -0.5000001  # ties only for those who add 128 first
    count = -(-channels // 4)
    given = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if is_planes else x
    plane, row = 3 * columns, columns
    kernel = ConversionKernel(
        images=2,
        size=(3, columns),
        channels=channels,
        x_strides=(
            (channels * plane, plane, row, 1)
            if is_planes
            else (plane * channels, 1, columns * channels, channels)
        ),
        out_strides=(plane * count, 1, row * count, count),
        x_scale=None,
        out_scale=scale,
        lanes=target.lanes,
    )
    _, out = run(kernel, target, given, np.zeros((2, 3, columns, count), np.float32))
    with np.errstate(over="ignore"):
        distance = np.abs(unpacked(out, channels).astype(int) - scale.integers(x).astype(int))
    # without a fused multiply-add the product is rounded before the sum is
    assert distance.max() <= (1 if scale.rounds_sum and not target.has_fma else 0)


@every_arithmetic
def test_integers_become_float32(target: Target) -> None:
    def check(channels: int) -> None:
        integers = np.random.default_rng(0).integers(0, 256, (2, 3, 5, channels)).astype(np.uint8)
        count = -(-channels // 4)
        kernel = ConversionKernel(
            images=2,
            size=(3, 5),
            channels=channels,
            x_strides=(15 * count, 1, 5 * count, count),
            out_strides=(15 * channels, 1, 5 * channels, channels),
            x_scale=SCALE,
            out_scale=None,
            lanes=target.lanes,
        )
        _, out = run(kernel, target, packed(integers), np.zeros((2, 3, 5, channels), np.float32))
        np.testing.assert_array_equal(out, SCALE.real(integers))

    check_each((1, 3, 4, 16, 35), check)


@every_arithmetic
def test_integers_become_those_of_another_scale(target: Target) -> None:
    """Every integer, side by side or into a part of wider pixels."""
    scales = (TensorScale(0.021, 3), TensorScale(0.3, 255), SUMMED, SIGNED)
    cases = product((1, 3, 16, 35), scales, (0, 2))
    check_each(cases, lambda case: check_requantize(target, *case))


def check_requantize(target: Target, channels: int, scale: TensorScale, others: int) -> None:
    integers = np.resize(np.random.default_rng(0).permutation(256), (2, 3, 43, channels)).astype(np.uint8)
    count = -(-channels // 4)
    wide = count + others
    kernel = ConversionKernel(
        images=2,
        size=(3, 43),
        channels=channels,
        x_strides=(129 * count, 1, 43 * count, count),
        out_strides=(129 * wide, 1, 43 * wide, wide),
        x_scale=SCALE,
        out_scale=scale,
        lanes=target.lanes,
    )
    _, out = run(kernel, target, packed(integers), np.full((2, 3, 43, wide), 7, np.float32))
    wanted = scale.integers(SCALE.real(integers))
    distance = np.abs(unpacked(out, channels).astype(int) - wanted)
    assert distance.max() <= (1 if scale.rounds_sum and not target.has_fma else 0)
    assert (out[..., count:] == 7).all()


def test_channels_of_an_output_that_lie_apart_are_refused() -> None:
    target = supported_targets()[0]
    kernel = ConversionKernel(
        images=1,
        size=(1, 1),
        channels=4,
        x_strides=(1, 1, 1, 1),
        out_strides=(8, 2, 2, 2),
        x_scale=SCALE,
        out_scale=None,
        lanes=target.lanes,
    )
    with pytest.raises(ValueError, match="lie 2 elements apart"):
        run(kernel, target, np.zeros(1, np.float32), np.zeros(8, np.float32))


@every_arithmetic
def test_maximum_over_windows(target: Target) -> None:
    def check(case: tuple[tuple[Pair, Pair, Pair], int]) -> None:
        (window, stride, padding), words = case
        x = np.random.default_rng(0).integers(0, 256, (2, 7, 9, 4 * words)).astype(np.uint8)
        wanted = largest_of_windows(x, window, stride, padding, lowest=0)
        kernel = pooling(target, x, words, window, stride, padding)
        _, out = run(kernel, target, packed(x), np.zeros((*wanted.shape[:3], words), np.float32))
        np.testing.assert_array_equal(unpacked(out, 4 * words), wanted)

    check_each(product(WINDOWS, (1, 5, 18)), check)


@every_arithmetic
def test_depthwise_convolution(target: Target) -> None:
    windows = (((3, 3), (1, 1), (1, 1)), ((5, 3), (2, 2), (2, 0)))
    cases = product((4, 18, 64), (None, TensorScale(90.0, 60)), windows)
    check_each(cases, lambda case: check_depthwise(target, *case))


def check_depthwise(
    target: Target, channels: int, out_scale: TensorScale | None, window: tuple[Pair, Pair, Pair]
) -> None:
    kernel, stride, padding = window
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (2, 9, 11, channels)).astype(np.uint8)
    weight = random.integers(-127, 128, (channels, 1, *kernel)).astype(np.int8)
    scales = random.uniform(0.5, 2, (2, channels)).astype(np.float32)
    size = output_size(x, kernel, stride, (1, 1), (2 * padding[0], 2 * padding[1]))
    count = -(-channels // 4)
    out_words = channels if out_scale is None else count
    made = Depthwise.tuned(
        target,
        shape=ConvShape(
            images=2, size=size, channels=1, filters=1, kernel=kernel, stride=stride, groups=channels
        ),
        padding=ImplicitPadding((9, 11), padding),
        strides=ImageStrides(strides(9, 11, count), strides(*size, out_words)),
        x_scale=TensorScale(0.5, 77),
        out_scale=out_scale,
    )
    out_array = np.zeros((2, *size, out_words), np.float32)
    *_, out = run(made, target, packed(x), *made.pack(weight, scales), out_array)
    expected = summed(x.astype(np.int64) - 77, weight, stride, padding, channels) * scales[0] + scales[1]
    if out_scale is None:
        np.testing.assert_array_equal(out, expected)
    else:
        np.testing.assert_array_equal(unpacked(out, channels), out_scale.integers(expected))
