"""Matrix products, brought into the shapes that BLAS takes."""

import math

import numpy as np

from engine.dtypes import Array
from engine.kernels.bfloat16 import operand, rounds_operands
from engine.kernels.casting import narrow, widen
from engine.kernels.promotion import PythonScalar

_PART = 1 << 22
"""Elements of a weight that are rounded at a time."""


def matmul(a: Array, b: Array) -> Array:
    """Multiply stacks of matrices with broadcasting, vectors included, as `numpy.matmul` and `torch.matmul` do.

    float16 is computed in float32; the result has the dtype of `a`.
    """
    left, right = _blas_ready(operand(widen(a))), _blas_ready(operand(widen(b)))
    if right.ndim == 2 and left.ndim > 2 and left.flags.c_contiguous:
        # one product of all rows instead of one per matrix of the stack
        rows = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
        return narrow((rows @ right).reshape(*left.shape[:-1], right.shape[1]), a.dtype)
    return narrow(np.matmul(left, right), a.dtype)


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Compute x Wᵀ + b over the last axis of `x`.

    Args:
        x: (…, in).
        weight: (out, in), or (in) for a single output without an axis of its own.
        bias: (out), or anything that broadcasts to the result; may be None.
    """
    result = _matmul_in_parts(widen(x), weight) if rounds_operands() else matmul(widen(x), weight.T)
    if bias is None:
        return narrow(result, x.dtype)
    return narrow(np.add(result, bias, out=result), x.dtype)


def _matmul_in_parts(x: Array, weight: Array) -> Array:
    """Compute x Wᵀ, some rows of W at a time, so that there is no rounded copy of a large weight."""
    if weight.ndim < 2 or weight.size <= _PART:
        return matmul(x, weight.T)
    parts = np.array_split(weight, min(len(weight), -(-weight.size // _PART)))
    return np.concatenate([matmul(x, part.T) for part in parts], axis=-1)


def add_product(x: Array, a: Array, b: Array, beta: PythonScalar, alpha: PythonScalar) -> Array:
    """Compute beta · x + alpha · a b; `x` broadcasts against the product and is not looked at where beta is 0."""
    product = matmul(widen(a), widen(b))
    if alpha != 1:
        product *= alpha
    if beta != 0:
        product += x if beta == 1 else widen(x) * beta
    return narrow(product, a.dtype)


def _blas_ready(x: Array) -> Array:
    """Copy matrices that BLAS cannot address: it needs contiguous rows or columns."""
    if x.ndim < 2 or x.itemsize in x.strides[-2:]:
        return x
    return np.ascontiguousarray(x)


def matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a product of arrays of these shapes.

    Raises:
        ValueError: the shapes cannot be multiplied.
    """
    if not a or not b:
        raise ValueError("a tensor without dimensions cannot be multiplied")
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ValueError(f"shapes {a} and {b} do not multiply: {a[-1]} columns against {inner} rows")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)
