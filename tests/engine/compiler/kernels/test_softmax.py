"""Softmax against the numpy kernel."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.target import Target
from engine.compiler.kernels.softmax import SoftmaxKernel
from engine.layers.softmax import log_softmax, softmax
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import steps

EXTENTS = st.sampled_from([1, 2, 3, 8, 17, 50])


@examples_of_kernels
@given(
    st.lists(EXTENTS, min_size=1, max_size=3),
    st.data(),
    st.booleans(),
    st.sampled_from(WIDTHS),
)
def test_any_axis(shape: list[int], data: st.DataObject, is_log: bool, target: Target) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    order = data.draw(st.permutations(range(len(shape))))
    memory = (
        np.random.default_rng(0).standard_normal([shape[place] for place in order]).astype(np.float32) * 30
    )
    x = memory.transpose([order.index(place) for place in range(len(shape))])
    out = np.full(shape, np.nan, np.float32)
    others = [place for place in range(len(shape)) if place != axis]
    kernel = SoftmaxKernel(
        x.shape[axis],
        steps(x)[axis],
        steps(out)[axis],
        tuple(shape[place] for place in others),
        tuple(steps(x)[place] for place in others),
        tuple(steps(out)[place] for place in others),
        is_log,
    )
    expected = (log_softmax if is_log else softmax)(x, axis)
    np.testing.assert_allclose(
        run(kernel, target, memory, out)[1], expected, rtol=3e-6, atol=1e-6 if is_log else 1e-37
    )


@every_target
@pytest.mark.parametrize("strides", [(1, 37), (6, 1)])
def test_numbers_that_are_not(strides: tuple[int, int], target: Target) -> None:
    x = np.zeros((6, 37), np.float32)
    x[0, 3:] = -math.inf
    x[1, 2], x[2, 5] = math.nan, math.inf
    x[3] = -math.inf
    x[4, 0], x[5] = 1e30, np.linspace(-104, 0, 37)
    memory = x if strides[0] == 1 else np.ascontiguousarray(x.T)
    kernel = SoftmaxKernel(37, strides[0], strides[0], (6,), (strides[1],), (strides[1],))
    result = run(kernel, target, memory, np.zeros_like(memory))[1]
    with np.errstate(invalid="ignore"):
        expected = softmax(x, 1)
    np.testing.assert_allclose(result if strides[0] == 1 else result.T, expected, rtol=3e-6, atol=1e-37)


@every_target
@pytest.mark.parametrize("strides", [(1, 37), (6, 1)])
def test_line_of_nothing_but_minus_infinity(strides: tuple[int, int], target: Target) -> None:
    """It gives zeros where that is asked for; NaN stays NaN, and other lines are as ever."""
    x = np.random.default_rng(0).standard_normal((6, 37)).astype(np.float32)
    x[1], x[3, 5:], x[4, 2] = -math.inf, -math.inf, math.nan
    memory = x if strides[0] == 1 else np.ascontiguousarray(x.T)
    kernel = SoftmaxKernel(37, strides[0], strides[0], (6,), (strides[1],), (strides[1],), skip_masked=True)
    result = run(kernel, target, memory, np.zeros_like(memory))[1]
    result = result if strides[0] == 1 else result.T
    with np.errstate(invalid="ignore"):
        expected = softmax(x, 1)
    expected[1] = 0
    np.testing.assert_allclose(result, expected, rtol=3e-6, atol=1e-37)
