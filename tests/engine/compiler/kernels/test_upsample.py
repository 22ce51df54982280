"""Resampling against the numpy kernel."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.target import Target
from engine.compiler.kernels.upsample import UpsampleKernel
from engine.dtypes import Array
from engine.kernels.resampling import resample
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run

PAIR = st.tuples(st.integers(1, 9), st.integers(1, 9))
MODES = st.sampled_from(["nearest", "nearest-exact", "bilinear", "bicubic"])


def _resampled(
    target: Target,
    mode: str,
    x: Array,
    size: tuple[int, ...],
    scale_factor: tuple[float, float] | None,
    align_corners: bool,
) -> Array:
    images, channels, height, width = x.shape
    source = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    out = np.full((images, size[0], size[1], channels), np.nan, np.float32)
    strides = [(h * w * channels, w * channels, channels) for h, w in ((height, width), (size[0], size[1]))]
    kernel = UpsampleKernel(
        mode,
        images,
        channels,
        (height, width),
        (size[0], size[1]),
        strides[0],
        strides[1],
        scale_factor,
        align_corners,
        kept=(mode == "bilinear" and height == size[0], mode == "bilinear" and width == size[1]),
    )
    exact, dynamic = (
        run(each, target, source, out, kernel.tables)[1]
        for each in (kernel, replace(kernel, is_dynamic=True))
    )
    np.testing.assert_array_equal(exact, dynamic)
    return exact.transpose(0, 3, 1, 2)


def _input(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@examples_of_kernels
@given(st.sampled_from([1, 3, 16, 37]), PAIR, PAIR, MODES, st.booleans(), st.sampled_from(WIDTHS))
def test_sizes(
    channels: int,
    size: tuple[int, int],
    wanted: tuple[int, int],
    mode: str,
    align_corners: bool,
    target: Target,
) -> None:
    x = _input(2, channels, *size)
    corners = align_corners and not mode.startswith("nearest")
    expected = resample(x, wanted, mode=mode, align_corners=corners or None)
    result = _resampled(target, mode, x, wanted, None, corners)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@examples_of_kernels
@given(
    PAIR,
    st.tuples(*[st.sampled_from([1.0, 1.7, 2.0, 0.6, 3.0])] * 2),
    MODES,
    st.sampled_from(WIDTHS),
)
def test_scale_factors(
    size: tuple[int, int], factors: tuple[float, float], mode: str, target: Target
) -> None:
    x = _input(1, 5, size[0] + 1, size[1] + 1)
    expected = resample(x, scale_factor=factors, mode=mode)
    result = _resampled(target, mode, x, expected.shape[2:], factors, False)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@every_target
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_large_images_are_split(mode: str, target: Target) -> None:
    x = _input(1, 64, 20, 20)
    expected = resample(x, scale_factor=(2.0, 2.0), mode=mode)
    result = _resampled(target, mode, x, (40, 40), (2.0, 2.0), False)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
