"""Distances between vectors."""

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import broadcast
from engine.kernels.casting import narrow, to_float
from engine.kernels.elementwise import BINARY
from engine.kernels.promotion import floating, real_dtype, result_type
from engine.kernels.reductions import norm
from engine.layers.checks import check_kind
from engine.spec import TensorSpec


def _infer_pairwise_distance(x1: TensorSpec, x2: TensorSpec, p: float, keepdim: bool) -> TensorSpec:
    check_kind("x1", x1, "iufc")
    check_kind("x2", x2, "iufc")
    shape = broadcast(x1.shape, x2.shape, argument="x2")
    if np.isinf(p) and shape[-1:] == (0,):
        raise ArgumentError("p", f"is {p}", "a finite order, as the vectors are empty")
    last = (1,) if keepdim and shape else ()
    return TensorSpec((*shape[:-1], *last), real_dtype(floating(result_type(x1, x2))))


@layer("F.pairwise_distance", infer=_infer_pairwise_distance)
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """Compute the p-norm of x1 - x2 + eps over the last dimension."""
    dtype = result_type(x1, x2)
    difference = to_float(BINARY["sub"](x1, x2))
    vectors = np.atleast_1d(difference + difference.dtype.type(eps))
    distances = norm(vectors, p, (vectors.ndim - 1,), keepdim and difference.ndim > 0)
    return narrow(distances, real_dtype(floating(dtype))).reshape(distances.shape if difference.ndim else ())
