"""Expressions over arrays of random shapes and strides against numpy."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.compiler.kernels.elementwise import Elementwise, copy, elementwise
from engine.dtypes import Array
from tests.cases import check_each
from tests.engine.compiler.emulation import WIDTHS
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import steps

EXTENTS = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33])


@st.composite
def arrangements(draw: st.DrawFn) -> tuple[list[int], list[tuple[list[int], list[bool]]]]:
    """A shape, and for three arrays the order of their axes in memory and which are broadcast."""
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=3))
    orders = []
    for array in range(3):
        order = draw(st.permutations(range(len(shape))))
        broadcast = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        orders.append((order, broadcast if array < 2 else [False] * len(shape)))
    return shape, orders


def _arranged(shape: list[int], order: list[int], broadcast: list[bool]) -> tuple[Array, Array]:
    """Return a contiguous array, and a view of it that has the shape."""
    sizes = [1 if broadcast[axis] else shape[axis] for axis in order]
    memory = np.random.default_rng(sum(shape)).standard_normal(sizes).astype(np.float32)
    back = [order.index(axis) for axis in range(len(shape))]
    return memory, np.broadcast_to(memory.transpose(back), shape)


@examples_of_kernels
@given(arrangements(), st.sampled_from(WIDTHS))
def test_any_strides(case: tuple[list[int], list[tuple[list[int], list[bool]]]], target: Target) -> None:
    shape, orders = case
    (x, x_view), (y, y_view), (out, _) = [_arranged(shape, *order) for order in orders]
    back = [orders[2][0].index(axis) for axis in range(len(shape))]
    out_steps = steps(out.transpose(back))
    expression = apply("sub", apply("mul", Leaf(0), 2.0), Leaf(1))
    kernel = elementwise(shape, [steps(x_view), steps(y_view)], out_steps, expression)
    result = run(kernel, target, x, y, np.full_like(out, np.nan))[2].transpose(back)
    np.testing.assert_array_equal(result, x_view * np.float32(2) - y_view)


@every_target
def test_permutes(target: Target) -> None:
    def check(case: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        shape, order = case
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        expected = np.ascontiguousarray(x.transpose(order))
        kernel = copy(expected.shape, steps(x.transpose(order)), steps(expected))
        result = run(kernel, target, x, np.full_like(expected, np.nan))[1]
        np.testing.assert_array_equal(result, expected)

    shapes = ((1, 3, 41, 43), (2, 70, 9, 31), (1, 65, 50, 21))
    check_each(product(shapes, ((0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 3, 2))), check)


@every_target
def test_slices_and_joins_leave_the_rest_alone(target: Target) -> None:
    x = np.arange(6 * 40, dtype=np.float32).reshape(6, 40)
    out = np.zeros((3, 60), np.float32)
    view = out[:, :20]
    kernel = copy(view.shape, steps(x[::2, ::2]), steps(view))
    expected = out.copy()
    expected[:, :20] = x[::2, ::2]
    np.testing.assert_array_equal(run(kernel, target, x, out)[1], expected)


@every_target
def test_long_lines_are_split(target: Target) -> None:
    x = np.random.default_rng(0).standard_normal(100_003).astype(np.float32)
    kernel = elementwise(x.shape, [(1,)], (1,), apply("relu", Leaf(0)))
    assert kernel.chunks == 2
    np.testing.assert_array_equal(run(kernel, target, x, np.full_like(x, np.nan))[1], np.maximum(x, 0))


def test_equal_work_gives_equal_kernels() -> None:
    flat = elementwise((24,), [(1,)], (1,), Leaf(0))
    assert elementwise((2, 3, 4), [(12, 4, 1)], (12, 4, 1), Leaf(0)) == flat
    assert elementwise((4, 1, 2, 3), [(1, 9, 12, 4)], (1, 5, 12, 4), Leaf(0)) == flat


@every_target
def test_nothing_and_a_single_element(target: Target) -> None:
    empty = elementwise((3, 0), [(1, 1)], (1, 1), Leaf(0))
    assert isinstance(empty, Elementwise)
    assert empty.chunks == 0
    one = elementwise((), [()], (), apply("neg", Leaf(0)))
    result = run(one, target, np.ones(1, np.float32), np.zeros(1, np.float32))[1]
    np.testing.assert_array_equal(result, [-1])
