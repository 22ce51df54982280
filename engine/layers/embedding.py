"""Look-up tables of vectors."""

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array, pnnx_name
from engine.errors import ArgumentError
from engine.layers.checks import check_rank
from engine.spec import TensorSpec


def _infer_embedding(input: TensorSpec, weight: TensorSpec) -> TensorSpec:
    if pnnx_name(input.dtype) not in ("i32", "i64"):
        raise ArgumentError("input", f"dtype {pnnx_name(input.dtype)}", "indices of dtype i64 or i32")
    check_rank("weight", weight, 2)
    return weight.with_shape((*input.shape, weight.shape[1]))


@layer("nn.Embedding", "F.embedding", infer=_infer_embedding)
def embedding(input: Array, weight: Array) -> Array:
    """Take the row of `weight` that each index names: (…) -> (…, features)."""
    rows = len(weight)
    if input.size and (input.min() < 0 or input.max() >= rows):
        wrong = input[(input < 0) | (input >= rows)].flat[0]
        raise ArgumentError("input", f"index {wrong}", f"0 to {rows - 1}")
    return np.take(weight, input, axis=0)
