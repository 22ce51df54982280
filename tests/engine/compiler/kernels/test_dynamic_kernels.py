"""Kernels whose extents are runtime values: each agrees with numpy at any of them, and one code serves them all."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from engine.compiler.contraction.convolution import DirectConvolution
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.matrix_product import MatrixProductKernel
from engine.compiler.contraction.shapes import ConvShape, ImageStrides, MatrixShape
from engine.compiler.contraction.split import ChunkSize
from engine.compiler.contraction.tile import MANY_ROWS, choose_tile
from engine.compiler.emit.jit import Kernel, general
from engine.compiler.emit.pointwise import Apply, Leaf
from engine.compiler.emit.target import Target
from engine.compiler.kernels.elementwise import copy, dynamic_kernel, elementwise
from engine.compiler.kernels.normalization import LayerNormKernel
from engine.compiler.kernels.reduction import reduction
from engine.compiler.kernels.softmax import SoftmaxKernel
from engine.dtypes import Array
from engine.layers.softmax import softmax
from tests.cases import check_each
from tests.engine.compiler.harness import every_target, run

LENGTHS = (2, 3, 5, 15, 16, 17, 33, 61, 130)
"""Below a vector and a tile, whole ones, and all kinds of rests."""
HEADS, PART, WIDTH = 3, 20, 40


def draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def scores(target: Target, length: int, epilogue: Epilogue | None = None) -> MatrixProductKernel:
    """Return queries times keys of all heads, both as (tokens, heads, features)."""
    token = HEADS * PART
    return MatrixProductKernel.tuned(
        target,
        shape=MatrixShape(batch=(1, HEADS), rows=length, depth=PART, columns=length),
        a_strides=(length * token, PART, token, 1),
        b_strides=(length * token, PART, 1, token),
        out_strides=(HEADS * length * length, length * length, length),
        epilogue=epilogue or Epilogue(),
        is_dynamic=True,
    )


def mixture(target: Target, length: int) -> MatrixProductKernel:
    """Return weights of attention times values, as (tokens, heads, features)."""
    token = HEADS * PART
    return MatrixProductKernel.tuned(
        target,
        shape=MatrixShape(batch=(1, HEADS), rows=length, depth=length, columns=PART),
        a_strides=(HEADS * length * length, length * length, length, 1),
        b_strides=(length * token, PART, token, 1),
        out_strides=(length * token, PART, token),
        is_dynamic=True,
    )


def apart(target: Target, length: int) -> MatrixProductKernel:
    """Return a product whose right operand lies evenly along neither axis."""
    return MatrixProductKernel.tuned(
        target,
        shape=MatrixShape(batch=(1, 1), rows=length, depth=PART, columns=length),
        a_strides=(0, 0, PART, 1),
        b_strides=(0, 0, 2, 2 * PART),
        out_strides=(0, 0, length),
        is_dynamic=True,
    )


def linear(target: Target, length: int, filters: int = 97, rows: int = 2) -> DirectConvolution:
    """Return a linear layer that adds a tensor and keeps what is positive; a chunk takes `rows` tiles of rows."""
    residual = EpilogueOperand(Broadcast.FULL, (0, 0, filters))
    expression = Apply("relu", (Apply("add", (Leaf(1), Leaf(0))),))
    return DirectConvolution(
        shape=ConvShape(images=1, size=(1, length), channels=WIDTH, filters=filters),
        strides=ImageStrides((0, 0, WIDTH), (0, 0, filters)),
        tile=choose_tile(target, MANY_ROWS, -(-filters // target.lanes)),
        chunk=ChunkSize(1, rows, 1),
        lanes=target.lanes,
        epilogue=Epilogue(expression, (residual,)),
        prefetches_weights=True,
        is_dynamic=True,
    )


@every_target
def test_scores_with_a_mask(target: Target) -> None:
    def check(length: int) -> None:
        query, key, mask = draw(length, HEADS, PART), draw(length, HEADS, PART), draw(length, length)
        operand = EpilogueOperand(Broadcast.FULL, (0, 0, length))
        kernel = scores(target, length, Epilogue(Apply("add", (Leaf(0), Leaf(1))), (operand,)))
        out = np.zeros((HEADS, length, length), np.float32)
        expected = np.einsum("ihd,jhd->hij", query, key) + mask
        np.testing.assert_allclose(run(kernel, target, query, key, out, mask)[2], expected, atol=1e-4)

    check_each(LENGTHS, check)


@every_target
def test_mixture_of_values(target: Target) -> None:
    def check(length: int) -> None:
        weights, value = draw(HEADS, length, length), draw(length, HEADS, PART)
        out = np.zeros((length, HEADS, PART), np.float32)
        expected = np.einsum("hij,jhd->ihd", weights, value)
        result = run(mixture(target, length), target, weights, value, out)[2]
        np.testing.assert_allclose(result, expected, atol=1e-4)

    check_each(LENGTHS, check)


@every_target
def test_operand_that_lies_evenly_along_no_axis(target: Target) -> None:
    left, right = draw(17, PART), draw(17, PART, 2)
    result = run(apart(target, 17), target, left, right, np.zeros((17, 17), np.float32))[2]
    np.testing.assert_allclose(result, left @ right[..., 0].T, atol=1e-4)


@every_target
def test_linear(target: Target) -> None:
    def check(length: int) -> None:
        kernel = linear(target, length)
        x, residual, weight, bias = draw(length, WIDTH), draw(length, 97), draw(97, WIDTH), draw(97)
        packed = kernel.packing.pack(weight[:, :, None, None], bias)
        out = np.zeros((length, 97), np.float32)
        expected = np.maximum(x @ weight.T + bias + residual, 0)
        np.testing.assert_allclose(run(kernel, target, x, *packed, out, residual)[3], expected, atol=1e-4)

    check_each(LENGTHS, check)


@every_target
@pytest.mark.parametrize("skips", [False, True])
def test_softmax(target: Target, skips: bool) -> None:
    def check(length: int) -> None:
        x = draw(HEADS, length, length)
        x[0, 0, 1:] = -np.inf
        if skips:
            x[0, 1] = -np.inf
        strides = (length * length, length)
        shape = (HEADS, length)
        kernel = SoftmaxKernel(length, 1, 1, shape, strides, strides, skip_masked=skips, is_dynamic=True)
        with np.errstate(invalid="ignore"):
            expected = softmax(x, 2)
        expected[0, 1] = 0 if skips else expected[0, 1]
        np.testing.assert_allclose(run(kernel, target, x, np.zeros_like(x))[1], expected, rtol=3e-6)

    check_each(LENGTHS, check)


@every_target
def test_layer_norm_is_that_of_the_exact_kernel(target: Target) -> None:
    def check(length: int) -> None:
        x, weight, bias = draw(length, WIDTH), draw(WIDTH), draw(WIDTH)
        kernel = LayerNormKernel(length, WIDTH, WIDTH, WIDTH, 1e-5)
        exact, ours = (
            run(one, target, x, weight, bias, np.zeros_like(x))[3]
            for one in (kernel, replace(kernel, is_dynamic=True))
        )
        np.testing.assert_array_equal(ours, exact)

    check_each(LENGTHS, check)


@every_target
@pytest.mark.parametrize("how", ["sum", "mean", "max", "min"])
def test_reduction_is_that_of_the_exact_kernel(target: Target, how: str) -> None:
    def check(case: tuple[int, tuple[int, ...]]) -> None:
        length, axes = case
        x = draw(length, WIDTH)
        shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
        kernel = reduction(how, x.shape, (WIDTH, 1), axes, (1,) * len(shape))
        exact, ours = (
            run(one, target, x, np.zeros(shape or 1, np.float32))[1]
            for one in (kernel, replace(kernel, is_dynamic=True))
        )
        np.testing.assert_array_equal(ours, exact)

    check_each(product(LENGTHS, ((0,), (1,), (0, 1))), check)


@every_target
def test_copies_and_expressions(target: Target) -> None:
    def check(length: int) -> None:
        x, line = draw(HEADS, length, PART), draw(PART)
        token = HEADS * PART
        turned = copy((length, HEADS, PART), (PART, length * PART, 1), (token, PART, 1))
        out = np.zeros((length, HEADS, PART), np.float32)
        np.testing.assert_array_equal(run(dynamic_kernel(turned), target, x, out)[1], x.transpose(1, 0, 2))
        across = copy((HEADS * PART, length), (length, 1), (1, token))
        matrix, out = x.reshape(token, length), np.zeros((length, token), np.float32)
        np.testing.assert_array_equal(run(dynamic_kernel(across), target, matrix, out)[1], matrix.T)
        strides = (length * PART, PART, 1)
        added = elementwise(x.shape, [strides, (0, 0, 1)], strides, Apply("add", (Leaf(0), Leaf(1))))
        np.testing.assert_array_equal(
            run(dynamic_kernel(added), target, x, line, np.zeros_like(x))[2], x + line
        )

    check_each(LENGTHS, check)


@every_target
def test_long_lines_are_done_in_pieces(target: Target) -> None:
    x = draw(70_001)
    kernel = dynamic_kernel(copy(x.shape, (1,), (1,)))
    np.testing.assert_array_equal(run(kernel, target, x, np.zeros_like(x))[1], x)
    assert kernel.chunks > 1


@every_target
def test_large_products_are_shared_by_threads(target: Target) -> None:
    kernel = mixture(target, 500)
    assert kernel.chunks > HEADS
    weights, value = draw(HEADS, 500, 500), draw(500, HEADS, PART)
    result = run(kernel, target, weights, value, np.zeros((500, HEADS, PART), np.float32))[2]
    np.testing.assert_allclose(result, np.einsum("hij,jhd->ihd", weights, value), atol=1e-3)


MAKERS: dict[str, Callable[[Target, int], Kernel]] = {
    "scores": scores,
    "mixture": mixture,
    "linear": linear,
    "softmax": lambda _, n: SoftmaxKernel(n, 1, 1, (n,), (n,), (n,), is_dynamic=True),
    "layer norm": lambda _, n: LayerNormKernel(n, WIDTH, WIDTH, WIDTH, 1e-5, is_dynamic=True),
    "reduction": lambda _, n: replace(reduction("mean", (n, WIDTH), (WIDTH, 1), (0,), (1,)), is_dynamic=True),
    "copy": lambda _, n: dynamic_kernel(copy((n, HEADS, PART), (PART, n * PART, 1), (HEADS * PART, PART, 1))),
}


@every_target
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_one_code_serves_all_lengths(make: Callable[[Target, int], Kernel], target: Target) -> None:
    assert len({general(make(target, length)) for length in LENGTHS}) == 1
