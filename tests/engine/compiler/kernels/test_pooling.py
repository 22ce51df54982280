"""Pooling against the numpy kernels."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.compiler.emit.target import Target
from engine.compiler.kernels.pooling import Pooling, Window, cells
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.adaptive_pooling import adaptive_avg_pool, adaptive_max_pool
from engine.layers.pooling import avg_pool, max_pool
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run

CHANNELS = st.sampled_from([1, 3, 4, 16, 37, 64, 70])
PAIR = st.tuples(st.integers(1, 4), st.integers(1, 4))
TARGETS = st.sampled_from(WIDTHS)


def _input(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _pooled(
    target: Target, how: str, x: Array, size: tuple[int, int], axes: list[Any], divisor: int = 0
) -> Array:
    """Run a pooling on channels-last copies; returns the result channels first."""
    images, channels, height, width = x.shape
    source = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    out = np.full((images, *size, channels), np.nan, np.float32)
    x_strides = (height * width * channels, width * channels, channels)
    out_strides = (size[0] * size[1] * channels, size[1] * channels, channels)
    kernel = Pooling(how, images, channels, axes[0], axes[1], x_strides, out_strides, divisor)
    exact, dynamic = (
        run(each, target, source, out)[1] for each in (kernel, replace(kernel, is_dynamic=True))
    )
    np.testing.assert_array_equal(exact, dynamic)
    return exact.transpose(0, 3, 1, 2)


@examples_of_kernels
@given(
    CHANNELS,
    st.tuples(st.integers(1, 9), st.integers(1, 12)),
    PAIR,
    PAIR,
    PAIR,
    st.booleans(),
    st.data(),
    TARGETS,
)
def test_max_pool(
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    ceil_mode: bool,
    data: st.DataObject,
    target: Target,
) -> None:
    padding = tuple(data.draw(st.integers(0, k // 2)) for k in kernel)
    x = _input((2, channels, *size))
    x[0, 0, 0, 0] = data.draw(st.sampled_from([1.0, math.nan, -math.inf]))
    try:
        expected = max_pool(x, kernel, stride, padding, dilation, ceil_mode)
    except ArgumentError:
        assume(False)
    counts = expected.shape[2:]
    axes = [Window(*axis) for axis in zip(size, counts, kernel, stride, padding, dilation, strict=True)]
    np.testing.assert_array_equal(_pooled(target, "max", x, counts, axes), expected)


@examples_of_kernels
@given(
    CHANNELS,
    st.tuples(st.integers(1, 9), st.integers(1, 12)),
    PAIR,
    PAIR,
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, 7]),
    st.data(),
    TARGETS,
)
def test_avg_pool(
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    ceil_mode: bool,
    counts_padding: bool,
    divisor: int | None,
    data: st.DataObject,
    target: Target,
) -> None:
    padding = tuple(data.draw(st.integers(0, k // 2)) for k in kernel)
    x = _input((1, channels, *size))
    try:
        expected = avg_pool(x, kernel, stride, padding, ceil_mode, counts_padding, divisor)
    except ArgumentError:
        assume(False)
    counts = expected.shape[2:]
    axes = [
        Window(*axis, 1, counts_padding) for axis in zip(size, counts, kernel, stride, padding, strict=True)
    ]
    result = _pooled(target, "average", x, counts, axes, divisor or 0)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@examples_of_kernels
@given(
    CHANNELS, st.tuples(st.integers(1, 14), st.integers(1, 14)), st.tuples(*[st.integers(1, 7)] * 2), TARGETS
)
def test_adaptive(channels: int, size: tuple[int, int], counts: tuple[int, int], target: Target) -> None:
    x = _input((2, channels, *size))
    axes = [cells(*axis) for axis in zip(size, counts, strict=True)]
    average, largest = (_pooled(target, how, x, counts, axes) for how in ("average", "max"))
    np.testing.assert_allclose(average, adaptive_avg_pool(x, counts), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(largest, adaptive_max_pool(x, counts)[0])


@every_target
@pytest.mark.parametrize("channels", [1000, 64, 5])
def test_global_average(channels: int, target: Target) -> None:
    x = _input((1, channels, 20, 31))
    result = _pooled(target, "average", x, (1, 1), [cells(20, 1), cells(31, 1)])
    np.testing.assert_allclose(result, x.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
