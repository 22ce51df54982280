"""Views go where numpy's strided arrays go."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.memory.view import Buffer, BufferKind, View, natural_strides, strides_in_order, whole
from engine.dtypes import Array

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def shown(view: View) -> Array:
    """Return the array of a view over a buffer that holds the numbers of its places."""
    memory = np.arange(view.buffer.size)
    steps = [stride * memory.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, steps)


def buffer_of(shape: tuple[int, ...]) -> Buffer:
    return Buffer(BufferKind.ARENA, prod(shape))


@st.composite
def views(draw: st.DrawFn) -> View:
    """Draw a view that was permuted, sliced and expanded."""
    shape = draw(SHAPES)
    view = whole(buffer_of(shape), shape, draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        start = draw(st.integers(0, shape[axis] - 1))
        view = view.sliced(axis, start, draw(st.integers(1, shape[axis] - start)))
    view = view.permuted(draw(st.permutations(range(len(shape)))))
    if draw(st.booleans()) and len(shape) < 4:
        view = view.expanded((2, *view.shape))
    return view


@given(SHAPES, st.data())
def test_whole_buffer_in_an_order_of_axes(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    lying = np.arange(prod(shape)).reshape([shape[axis] for axis in order])
    np.testing.assert_array_equal(
        shown(whole(buffer_of(shape), shape, order)), lying.transpose(np.argsort(order))
    )
    assert strides_in_order(shape, range(len(shape))) == natural_strides(shape)


@given(views(), st.data())
def test_permuted(view: View, data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(len(view.shape))))
    np.testing.assert_array_equal(shown(view.permuted(axes)), shown(view).transpose(axes))


@given(views(), st.data())
def test_sliced(view: View, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(view.shape) - 1))
    start, step = data.draw(st.integers(0, view.shape[axis] - 1)), data.draw(st.integers(1, 3))
    wanted = shown(view)[(slice(None),) * axis + (slice(start, None, step),)]
    np.testing.assert_array_equal(shown(view.sliced(axis, start, wanted.shape[axis], step)), wanted)


@given(views(), st.integers(1, 3))
def test_expanded(view: View, extent: int) -> None:
    shape = (extent, *(extent if have == 1 else have for have in view.shape))
    np.testing.assert_array_equal(shown(view.expanded(shape)), np.broadcast_to(shown(view), shape))


@given(views(), st.data())
def test_reshaped_wherever_numpy_needs_no_copy(view: View, data: st.DataObject) -> None:
    factors = [factor for extent in view.shape for factor in ((2, 2) if extent == 4 else (extent,))]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(factors)), max_size=3)))
    wanted = tuple(
        prod(factors[first:last]) for first, last in zip([0, *cuts], [*cuts, len(factors)], strict=True)
    )
    seen = shown(view)
    expected = seen.reshape(wanted)
    reshaped = view.reshaped(wanted)
    if np.may_share_memory(expected, seen):
        assert reshaped is not None
    if reshaped is not None:
        np.testing.assert_array_equal(shown(reshaped), expected)


@given(views())
def test_is_contiguous_as_numpy_sees_it(view: View) -> None:
    assert view.is_contiguous == shown(view).flags.c_contiguous


def test_empty_view_takes_any_shape() -> None:
    view = whole(Buffer(BufferKind.ARENA, 0), (0, 3), (1, 0)).reshaped((3, 0, 2))
    assert view is not None
    assert (view.size, view.shape) == (0, (3, 0, 2))
