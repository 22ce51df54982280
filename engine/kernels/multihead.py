"""Multi-head attention with its projections."""

import math
from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.kernels.attention import attention_weights, weighted_values
from engine.kernels.matrix import linear, matmul


@dataclass(frozen=True)
class Projections:
    """Weights of the projections into and out of attention; biases and extra key and value may be None.

    Attributes:
        query, key, value: (features, …) each.
        bias: (3 · features), for query, key and value.
        packed: query, key and value in one array, where the file has them so.
        output, output_bias: projection of the attended values.
        extra_key, extra_value: (1, 1, features), one more key and value that every query sees.
    """

    query: Array
    key: Array
    value: Array
    bias: Array | None
    packed: Array | None
    output: Array
    output_bias: Array | None
    extra_key: Array | None
    extra_value: Array | None


def project(query: Array, key: Array, value: Array, weights: Projections) -> tuple[Array, Array, Array]:
    """Project (batch, length, features) inputs; one product does for all three where they are one array."""
    if weights.packed is not None and query is key and key is value:
        projected = linear(query, weights.packed, weights.bias)
        q, k, v = np.split(projected, 3, axis=-1)
        return q, k, v
    biases = (None, None, None) if weights.bias is None else np.split(weights.bias, 3)
    matrices = (weights.query, weights.key, weights.value)
    q, k, v = (
        linear(x, weight, bias) for x, weight, bias in zip((query, key, value), matrices, biases, strict=True)
    )
    return q, k, v


def multihead(
    query: Array,
    key: Array,
    value: Array,
    weights: Projections,
    heads: int,
    bias: Array | None,
    add_zero_attn: bool,
    needs_weights: bool,
) -> tuple[Array, Array | None]:
    """Attend with so many heads.

    Args:
        query: (batch, queries, features), float32 or float64.
        key: (batch, keys, …).
        value: (batch, keys, …).
        weights: the projections.
        heads: number of heads that the features are split into.
        bias: added to the scores; broadcasts to (batch, heads, queries, keys). May be None.
        add_zero_attn: let every query see one more key and value of zeros.
        needs_weights: whether to return the weights.

    Returns:
        The output, (batch, queries, features), and the weights, (batch, heads, queries, keys), or None.
    """
    batch, length, features = query.shape
    q, k, v = project(query, key, value, weights)
    k, v = _extended(k, weights.extra_key), _extended(v, weights.extra_value)
    size = q.shape[-1] // heads
    q, k, v = (x.reshape(*x.shape[:2], heads, size).swapaxes(1, 2) for x in (q, k, v))
    if add_zero_attn:
        zero = np.zeros((batch, heads, 1, size), k.dtype)
        k, v = np.concatenate([k, zero], axis=2), np.concatenate([v, zero], axis=2)
    if bias is not None:
        unseen = k.shape[2] - bias.shape[-1]
        bias = np.pad(bias, [(0, 0)] * (bias.ndim - 1) + [(0, unseen)])
    scale = 1 / math.sqrt(size)
    attention = attention_weights(q, k, bias, scale) if needs_weights else None
    attended = weighted_values(q, k, v, bias, scale) if attention is None else matmul(attention, v)
    joined = attended.swapaxes(1, 2).reshape(batch, length, features)
    return linear(joined, weights.output, weights.output_bias), attention


def _extended(x: Array, extra: Array | None) -> Array:
    """Append one more element to the sequence of every item of the batch."""
    if extra is None:
        return x
    return np.concatenate([x, np.broadcast_to(extra, (len(x), 1, x.shape[2]))], axis=1)
