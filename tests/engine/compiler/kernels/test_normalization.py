"""Normalization against the numpy kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.target import Target
from engine.compiler.kernels.normalization import GroupNormKernel, LayerNormKernel
from engine.dtypes import Array
from engine.kernels.normalization import group_norm, layer_norm, rms_norm
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run

TARGETS = st.sampled_from(WIDTHS)


def _random(*shape: int) -> Array:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 2 + 3).astype(np.float32)


@examples_of_kernels
@given(
    st.integers(1, 5),
    st.sampled_from([1, 2, 5, 16, 37, 100]),
    *[st.booleans()] * 3,
    st.sampled_from([0, 3]),
    TARGETS,
)
def test_layer_norm(
    lines: int,
    length: int,
    has_weight: bool,
    has_bias: bool,
    is_centred: bool,
    gap: int,
    target: Target,
) -> None:
    x = _random(lines, length + gap)
    weight = _random(length) if has_weight else None
    bias = _random(length) + 1 if has_bias else None
    kernel = LayerNormKernel(lines, length, length + gap, length, 1e-5, has_weight, has_bias, is_centred)
    arrays = [x, *(array for array in (weight, bias) if array is not None)]
    result = run(kernel, target, *arrays, np.full((lines, length), np.nan, np.float32))[-1]
    if is_centred:
        expected = layer_norm(x[:, :length], 1, weight, bias, 1e-5)
    else:
        expected = rms_norm(x[:, :length], 1, weight, 1e-5)
        expected = expected if bias is None else expected + bias
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@examples_of_kernels
@given(
    st.integers(1, 2),
    st.sampled_from([(1, 1), (1, 5), (6, 2), (70, 1), (3, 24), (16, 8), (5, 64)]),
    st.sampled_from([1, 7, 300]),
    *[st.booleans()] * 2,
    TARGETS,
)
def test_group_norm(
    images: int, split: tuple[int, int], pixels: int, has_weight: bool, has_bias: bool, target: Target
) -> None:
    groups, channels = split[0], split[0] * split[1]
    x = _random(images, pixels, channels)
    weight = _random(channels) if has_weight else None
    bias = _random(channels) + 1 if has_bias else None
    strides = (pixels * channels, channels)
    kernel = GroupNormKernel(images, pixels, channels, groups, strides, strides, 1e-5, has_weight, has_bias)
    arrays = [x, *(array for array in (weight, bias) if array is not None)]
    result = run(kernel, target, *arrays, np.full_like(x, np.nan))[-1]
    expected = group_norm(x.transpose(0, 2, 1), groups, weight, bias, 1e-5).transpose(0, 2, 1)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@every_target
@pytest.mark.parametrize("is_centred", [True, False])
def test_long_lines(is_centred: bool, target: Target) -> None:
    x = _random(50, 777)
    kernel = LayerNormKernel(50, 777, 777, 777, 1e-6, False, False, is_centred)
    expected = layer_norm(x, 1, None, None, 1e-6) if is_centred else rms_norm(x, 1, None, 1e-6)
    np.testing.assert_allclose(
        run(kernel, target, x, np.full_like(x, np.nan))[1], expected, rtol=1e-5, atol=1e-5
    )
