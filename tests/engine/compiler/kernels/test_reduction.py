"""Reductions over any axes against numpy."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.target import Target
from engine.compiler.kernels.reduction import reduction
from tests.cases import check_each
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import steps

REFERENCES: dict[str, Callable[..., Any]] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@examples_of_kernels
@given(
    st.lists(st.sampled_from([1, 2, 3, 8, 17, 50]), min_size=1, max_size=3),
    st.sampled_from(list(REFERENCES)),
    st.data(),
    st.sampled_from(WIDTHS),
)
def test_any_axes(shape: list[int], how: str, data: st.DataObject, target: Target) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape)))
    order = data.draw(st.permutations(range(len(shape))))
    memory = np.random.default_rng(0).standard_normal([shape[axis] for axis in order]).astype(np.float32)
    x = memory.transpose([order.index(axis) for axis in range(len(shape))])
    expected = np.array(REFERENCES[how](x.astype(np.float64), tuple(axes)), order="C")
    kernel = reduction(how, shape, steps(x), axes, steps(expected))
    out = np.full(expected.size, np.nan, np.float32)
    result = run(kernel, target, memory, out)[1].reshape(expected.shape)
    # what sums cancel to is as exact as their terms are large
    size = float(np.max(REFERENCES[how](np.abs(x), tuple(axes))))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6 * size)


@every_target
def test_long_axes_and_nan(target: Target) -> None:
    def check(case: tuple[str, tuple[int, int]]) -> None:
        how, strides = case
        x = np.random.default_rng(0).standard_normal((40, 1000)).astype(np.float32) + 1
        x[3, 700] = math.nan
        x[4, 0] = -math.inf
        memory = x if strides[1] == 1 else np.ascontiguousarray(x.T)
        kernel = reduction(how, x.shape, strides, [1], (1,))
        result = run(kernel, target, memory, np.zeros(40, np.float32))[1]
        np.testing.assert_allclose(result, REFERENCES[how](x, 1), rtol=1e-5, atol=1e-5)

    check_each(product(REFERENCES, ((1, 40), (1000, 1))), check)
