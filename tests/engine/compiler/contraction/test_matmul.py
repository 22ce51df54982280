"""The matrix product kernel against numpy, over shapes, strides, packing and epilogues."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.matrix_product import MatrixProductKernel
from engine.compiler.contraction.shapes import MatrixShape
from engine.compiler.contraction.tile import Tile
from engine.compiler.emit.jit import cache
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.dtypes import Array
from tests.engine.compiler.harness import every_target, examples_of_kernels, run
from tests.engine.compiler.kernels.images import numbers, steps


def four(view: Array) -> tuple[int, int, int, int]:
    """Return the strides of an array of four axes, in elements."""
    outer, inner, row, column = steps(view)
    return outer, inner, row, column


def kernel_for(
    target: Target, a: Array, b: Array, epilogue: Epilogue | None = None
) -> tuple[MatrixProductKernel, Array]:
    """Return the tuned kernel for views of four axes, and an output without gaps for it."""
    out = np.full((*a.shape[:3], b.shape[3]), 7, np.float32)
    made = MatrixProductKernel.tuned(
        target,
        shape=MatrixShape(batch=a.shape[:2], rows=a.shape[2], depth=a.shape[3], columns=b.shape[3]),
        a_strides=four(a),
        b_strides=four(b),
        out_strides=four(out)[:3],
        epilogue=epilogue or Epilogue(),
    )
    return made, out


@every_target
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Any sizes and tiles, either operand transposed, b in place or copied, chunks of any size."""
    batch = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
    rows, depth, columns = (data.draw(st.integers(1, most)) for most in (13, 40, 70))
    a_memory = numbers(*batch, rows, depth)
    a = a_memory
    if data.draw(st.booleans()):
        a_memory = numbers(*batch, depth, rows)
        a = a_memory.swapaxes(2, 3)
    b_memory = numbers(*batch, depth, columns, seed=1)
    b = b_memory
    if data.draw(st.booleans()):
        b_memory = numbers(*batch, columns, depth, seed=1)
        b = b_memory.swapaxes(2, 3)
    made, out = kernel_for(target, a, b)
    tile = Tile(data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)))
    made = replace(
        made,
        tile=tile,
        packed=made.packed or data.draw(st.booleans()),
        panels=data.draw(st.integers(1, 3)),
        chunk_rows=tile.pixels * data.draw(st.integers(1, 3)),
    )
    out = run(made, target, a_memory, b_memory, out)[2]
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


@every_target
@pytest.mark.parametrize("tokens", [1, 50])
def test_attention_over_one_tensor_of_queries_keys_and_values(target: Target, tokens: int) -> None:
    """Views into the output of one Linear: heads side by side in a row; scale, mask and bias in the epilogue."""
    heads, width = 3, 24
    fused = numbers(1, tokens, 3, heads, width)
    mask = numbers(tokens, tokens, seed=1)
    q, k, v = (fused[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
    epilogue = Epilogue(
        apply("add", apply("mul", Leaf(0), 0.25), Leaf(1)), (EpilogueOperand(Broadcast.FULL, (0, 0, tokens)),)
    )
    made, scores = kernel_for(target, q, k.swapaxes(2, 3), epilogue)
    # the harness knows whole arrays only: the views begin inside of `fused`
    queries, keys, values = (
        np.ascontiguousarray(fused.reshape(-1)[part * heads * width :]) for part in range(3)
    )
    scores = run(made, target, queries, keys, scores, mask)[2]
    np.testing.assert_allclose(scores, q @ k.swapaxes(2, 3) * 0.25 + mask, rtol=1e-4, atol=1e-5)
    made, out = kernel_for(target, scores, v)
    made = replace(made, out_strides=(tokens * heads * width, width, heads * width))
    out = run(made, target, scores, values, out)[2].reshape(1, tokens, heads, width)
    np.testing.assert_allclose(out.transpose(0, 2, 1, 3), scores @ v, rtol=1e-4, atol=1e-4)


@every_target
def test_neither_axis_of_b_lies_side_by_side(target: Target) -> None:
    """Columns and rows both with a stride, as in every second element of a transposed matrix."""
    a, memory = numbers(1, 1, 5, 9), numbers(1, 1, 9, 2 * 21, seed=1)
    b = memory[..., ::2]
    made, out = kernel_for(target, a, b)
    assert made.packed
    out = run(made, target, a, memory, out)[2]
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)


@every_target
def test_operands_that_repeat_over_the_batch(target: Target) -> None:
    """Stride 0: one matrix times each of a batch; a bias per column."""
    a, b, bias = numbers(2, 3, 4, 10), numbers(1, 1, 10, 19, seed=1), numbers(19, seed=2)
    epilogue = Epilogue(
        apply("relu", apply("add", Leaf(0), Leaf(1))), (EpilogueOperand(Broadcast.CHANNEL, (0,)),)
    )
    made, out = kernel_for(target, a, np.broadcast_to(b, (2, 3, 10, 19)), epilogue)
    out = run(made, target, a, b, out, bias)[2]
    np.testing.assert_allclose(out, np.maximum(a @ b + bias, 0), rtol=1e-4, atol=1e-5)


@every_target
def test_nan_and_infinity_go_on(target: Target) -> None:
    """They reach the results of their row or column, and no others."""
    a, b = np.abs(numbers(1, 1, 6, 5)) + 1, np.abs(numbers(1, 1, 5, 7, seed=1)) + 1
    a[0, 0, 2, 3], b[0, 0, 1, 4] = np.nan, np.inf
    made, out = kernel_for(target, a, b)
    np.testing.assert_allclose(run(made, target, a, b, out)[2], a @ b, rtol=1e-4)


@every_target
def test_each_thread_has_scratch_memory_of_its_own(target: Target) -> None:
    """The second thread leaves the first one's alone, and the third one's."""
    a, b = numbers(1, 1, 4, 8), numbers(1, 1, 30, 8, seed=1)
    made, out = kernel_for(target, a, b.swapaxes(2, 3))
    scratch = np.full((3, made.scratch), 7, np.float32)
    addresses = np.array([array.ctypes.data for array in (a, b, out, scratch)], np.uint64)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    code = cache.compile(made, target)
    function(code.address)(addresses.ctypes.data, 0, 1)
    np.testing.assert_allclose(out, a @ b.swapaxes(2, 3), rtol=1e-4, atol=1e-5)
    assert (scratch[[0, 2]] == 7).all()


def test_heads_are_chunks_and_one_large_product_is_split() -> None:
    """Enough chunks for threads, and no panel copied more often than that needs."""
    target = Target("avx512", 16, 32, True, "", "")
    heads = np.empty((1, 12, 197, 64), np.float32)
    made, _ = kernel_for(target, heads, heads.swapaxes(2, 3))
    assert made.chunks == 12
    large = np.empty((1, 1, 512, 512), np.float32)
    assert 4 <= kernel_for(target, large, large)[0].chunks <= 16
