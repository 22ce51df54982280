"""Padding against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.pointwise import Literal
from engine.compiler.emit.target import Target, supported_targets
from engine.compiler.kernels.padding import PadKernel
from engine.dtypes import Array
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import examples_of_kernels, run
from tests.engine.compiler.kernels.images import steps

EXTENTS = st.sampled_from([1, 2, 3, 5, 16, 19])


def _expected(x: Array, margins: tuple[int, int, int, int], value: float) -> Array:
    top, bottom, left, right = margins
    grown = np.pad(
        x,
        ((0, 0), (0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))),
        constant_values=value,
    )
    rows = slice(max(-top, 0), grown.shape[2] - max(-bottom, 0))
    return grown[:, :, rows, max(-left, 0) : grown.shape[3] - max(-right, 0)].transpose(0, 2, 3, 1)


@examples_of_kernels
@given(
    st.tuples(st.integers(1, 2), EXTENTS, EXTENTS, EXTENTS),
    st.permutations(range(4)),
    st.tuples(*[st.integers(-1, 3)] * 4),
    st.sampled_from([0.0, -1.5]),
    st.integers(0, 2),
    st.sampled_from(WIDTHS),
)
def test_any_margins(
    shape: tuple[int, int, int, int],
    order: list[int],
    margins: tuple[int, int, int, int],
    value: float,
    gap: int,
    target: Target,
) -> None:
    memory = np.random.default_rng(0).standard_normal([shape[axis] for axis in order]).astype(np.float32)
    x = memory.transpose([order.index(axis) for axis in range(4)])
    size = (shape[2] + margins[0] + margins[1], shape[3] + margins[2] + margins[3])
    if min(size) < 1:
        return
    out = np.full((shape[0], *size, shape[1] + gap), 7, np.float32)
    kernel = PadKernel(shape, steps(x), size, (margins[0], margins[2]), steps(out)[:3], Literal(value))
    result = run(kernel, target, memory, out)[1]
    np.testing.assert_array_equal(result[..., : shape[1]], _expected(x, margins, value))
    np.testing.assert_array_equal(result[..., shape[1] :], 7)


@pytest.mark.parametrize("channels_last", [False, True])
def test_large_images_are_split(channels_last: bool) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    memory = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if channels_last else x
    view = memory.transpose(0, 3, 1, 2) if channels_last else memory
    out = np.full((1, 230, 230, 3), np.nan, np.float32)
    kernel = PadKernel((1, 3, 224, 224), steps(view), (230, 230), (3, 3), steps(out)[:3])
    assert kernel.chunks == 5
    expected = np.pad(x, ((0, 0), (0, 0), (3, 3), (3, 3))).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(run(kernel, supported_targets()[0], memory, out)[1], expected)
