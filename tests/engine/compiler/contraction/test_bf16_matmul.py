"""Products of computed matrices whose operands are rounded to bfloat16, against numpy on rounded ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.compiler.contraction.bf16_matmul import Bf16MatrixProduct
from engine.compiler.contraction.epilogue import Broadcast, Epilogue, EpilogueOperand
from engine.compiler.contraction.shapes import MatrixShape
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.emit.target import Target
from engine.dtypes import Array
from engine.kernels.bfloat16 import rounded_to_bfloat16
from tests.engine.compiler.emulation import BF16, WIDTHS
from tests.engine.compiler.harness import examples_of_kernels, run
from tests.engine.compiler.kernels.images import numbers, steps

every_arithmetic = pytest.mark.parametrize("target", [*WIDTHS, *BF16], ids=lambda target: target.name)


def kernel(
    target: Target, a: Array, b: Array, out: Array, rows: int, epilogue: Epilogue | None = None
) -> Bf16MatrixProduct:
    strides_a, strides_b, strides_out = steps(a), steps(b), steps(out)
    return Bf16MatrixProduct(
        shape=MatrixShape(
            batch=(a.shape[0], a.shape[1]), rows=a.shape[2], depth=a.shape[3], columns=b.shape[3]
        ),
        a_strides=(strides_a[0], strides_a[1], strides_a[2], strides_a[3]),
        b_strides=(strides_b[0], strides_b[1], strides_b[2], strides_b[3]),
        out_strides=(strides_out[0], strides_out[1], strides_out[2]),
        rows=rows,
        has_tiles=target.has_tiles,
        group=(2, 2) if target.has_tiles else (3, 2),
        lanes=target.lanes,
        epilogue=epilogue or Epilogue(),
    )


@every_arithmetic
@examples_of_kernels
@given(data=st.data())
def test_any_shape(target: Target, data: st.DataObject) -> None:
    """Either side of the right operand side by side; any rows of chunks and groups; an operand that a batch shares."""
    outer, inner, rows = (data.draw(st.integers(1, most)) for most in (2, 3, 40))
    depth = data.draw(st.sampled_from([1, 2, 5, 16, 31, 32, 33, 64, 70]))
    columns = data.draw(st.sampled_from([1, 3, 16, 17, 33, 50]))
    is_turned = data.draw(st.booleans())
    a = numbers(outer, inner, rows, depth)
    right = (
        numbers(outer, inner, columns, depth, seed=1) if is_turned else numbers(outer, inner, depth, columns)
    )
    b = right.swapaxes(2, 3) if is_turned else right
    wanted = rounded_to_bfloat16(a) @ rounded_to_bfloat16(b)
    space = np.zeros((outer, inner, rows, columns), np.float32)
    made = kernel(target, a, b, space, data.draw(st.integers(1, rows)))
    if not target.has_tiles:
        made = replace(made, group=data.draw(st.sampled_from([(3, 2), (29, 1), (1, 8), (14, 2), (5, 4)])))
    *_, out = run(made, target, a, right, space)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@every_arithmetic
def test_epilogue(target: Target) -> None:
    """A factor, and a mask for each place, as attention has them; and one number per column of each outer product."""
    a, b = numbers(2, 3, 19, 20), numbers(2, 3, 20, 21, seed=1)
    mask, shift, factor = numbers(2, 3, 19, 21, seed=2), numbers(2, 21, seed=3), numbers(1, seed=4)
    full = steps(mask)
    operands = (
        EpilogueOperand(Broadcast.SCALAR),
        EpilogueOperand(Broadcast.FULL, (full[0], full[1], full[2])),
        EpilogueOperand(Broadcast.CHANNEL, (21,)),
    )
    expression = apply("add", apply("add", apply("mul", Leaf(0), Leaf(1)), Leaf(2)), Leaf(3))
    space = np.zeros_like(mask)
    made = kernel(target, a, b, space, 8, Epilogue(expression, operands))
    wanted = rounded_to_bfloat16(a) @ rounded_to_bfloat16(b) * factor + mask + shift[:, None, None]
    out = run(made, target, a, b, space, factor, mask, shift)[2]
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
