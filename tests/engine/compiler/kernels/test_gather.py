import numpy as np
import pytest

from engine.compiler.emit.target import Target
from engine.compiler.kernels.gather import GatherKernel
from engine.dtypes import Array
from tests.engine.compiler.harness import every_target, run


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def places(limit: int, *shape: int) -> Array:
    return np.random.default_rng(1).integers(0, limit, shape).astype(np.float32)


@every_target
@pytest.mark.parametrize("width", [1, 7, 37, 64])
def test_rows_of_a_table(target: Target, width: int) -> None:
    table, ids = numbers(9, width), places(9, 2, 5)
    kernel = GatherKernel(
        shape=(2, 5, width),
        x_strides=(0, 0, 1),
        limits=(9,),
        steps=(width,),
        index_strides=((5, 1, 0),),
        out_strides=(5 * width, width, 1),
    )
    *_, out = run(kernel, target, table, ids, np.zeros((2, 5, width), np.float32))
    np.testing.assert_array_equal(out, table[ids.astype(np.int64)])


@every_target
def test_element_by_element_along_the_last_axis(target: Target) -> None:
    x, ids = numbers(3, 11), places(11, 3, 5)
    kernel = GatherKernel(
        shape=(3, 5),
        x_strides=(11, 0),
        limits=(11,),
        steps=(1,),
        index_strides=((5, 1),),
        out_strides=(5, 1),
    )
    *_, out = run(kernel, target, x, ids, np.zeros((3, 5), np.float32))
    np.testing.assert_array_equal(out, np.take_along_axis(x, ids.astype(np.int64), 1))


@every_target
def test_several_indices_and_an_output_with_gaps(target: Target) -> None:
    """x[i, :, j] of (4, 3, 6): what the indices are spread over comes first."""
    x, i, j = numbers(4, 3, 6), places(4, 5), places(6, 5)
    kernel = GatherKernel(
        shape=(5, 3),
        x_strides=(0, 6),
        limits=(4, 6),
        steps=(18, 1),
        index_strides=((1, 0), (1, 0)),
        out_strides=(6, 2),
    )
    *_, out = run(kernel, target, x, i, j, np.zeros((5, 6), np.float32))
    np.testing.assert_array_equal(out[:, ::2], x[i.astype(np.int64), :, j.astype(np.int64)])


@every_target
def test_index_out_of_range_takes_the_nearest(target: Target) -> None:
    """Nothing else is read, whatever the indices are: memory of others would leave the graph."""
    table, ids = numbers(4, 3), np.array([-1, 4, 1e30, -np.inf, np.inf, np.nan], np.float32)
    kernel = GatherKernel(
        shape=(6, 3),
        x_strides=(0, 1),
        limits=(4,),
        steps=(3,),
        index_strides=((1, 0),),
        out_strides=(3, 1),
    )
    *_, out = run(kernel, target, table, ids, np.zeros((6, 3), np.float32))
    np.testing.assert_array_equal(out[:5], table[[0, 3, 3, 0, 3]])
    assert any(np.array_equal(out[5], row) for row in table)
