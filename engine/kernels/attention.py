"""Scaled dot-product attention."""

import math

import numpy as np

from engine.dtypes import Array
from engine.kernels.casting import narrow, widen
from engine.kernels.matrix import matmul

_SCORES = 1 << 18
"""Elements of the scores that are computed at a time."""


def attention_weights(
    query: Array, key: Array, bias: Array | None, scale: float, *, skip_masked: bool = False
) -> Array:
    """Compute softmax(scale · q kᵀ + bias) over the keys.

    Args:
        query: (…, queries, features), float32 or float64.
        key: (…, keys, features).
        bias: broadcasts to (…, queries, keys); -inf takes a key out of sight. May be None.
        scale: factor of the products.
        skip_masked: give a query that sees no key weights of 0, instead of NaN.

    Returns:
        (…, queries, keys).
    """
    scores = matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
    if bias is not None:
        scores = _add(scores, bias)
    highest = scores.max(axis=-1, keepdims=True, initial=-math.inf)
    if skip_masked:
        np.copyto(highest, 0, where=np.isneginf(highest))
    scores -= highest
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    if skip_masked:
        np.copyto(total, 1, where=total == 0)
    scores /= total
    return scores


def _add(scores: Array, bias: Array) -> Array:
    """Add to the scores, in place unless the bias has leading axes that they lack."""
    if np.broadcast_shapes(scores.shape, bias.shape) == scores.shape:
        scores += bias
        return scores
    return np.asarray(scores + bias, scores.dtype)


def attend(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Array:
    """Compute softmax(scale · q kᵀ + mask) v, as `torch.nn.functional.scaled_dot_product_attention` does.

    Args:
        query: (…, heads, queries, features); leading axes broadcast.
        key: (…, heads, keys, features).
        value: (…, heads, keys, outputs).
        mask: added where float; where bool, True lets a query see a key. Broadcasts to (…, queries, keys).
        causal: let query i see keys 0 … i only.
        scale: by default 1 / √features.
        grouped: key and value may have fewer heads, each shared by as many successive query heads.

    Returns:
        (…, heads, queries, outputs) of the query's dtype.
    """
    q, k, v = widen(query), widen(key), widen(value)
    if grouped:
        k, v = _repeat_heads(k, q.shape[-3]), _repeat_heads(v, q.shape[-3])
    bias = None if mask is None else mask_bias(mask, q)
    if causal:
        hidden = np.triu(np.ones((q.shape[-2], k.shape[-2]), np.bool_), 1)
        unseen = mask_bias(~hidden, q)
        bias = unseen if bias is None else bias + unseen
    factor = 1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale
    return narrow(weighted_values(q, k, v, bias, factor, skip_masked=True), query.dtype)


def weighted_values(
    query: Array, key: Array, value: Array, bias: Array | None, scale: float, *, skip_masked: bool = False
) -> Array:
    """Compute softmax(scale · q kᵀ + bias) v for some queries at a time: the scores of all would be the most memory.

    Args:
        query: (…, queries, features), float32 or float64.
        key: (…, keys, features).
        value: (…, keys, outputs).
        bias: broadcasts to (…, queries, keys).
        scale: factor of the products.
        skip_masked: give a query that sees no key 0, instead of NaN.

    Returns:
        (…, queries, outputs).
    """
    scores = math.prod(np.broadcast_shapes(query.shape[:-2], key.shape[:-2])) * key.shape[-2]
    size = max(1, _SCORES // max(1, scores))
    if size >= query.shape[-2]:
        return matmul(attention_weights(query, key, bias, scale, skip_masked=skip_masked), value)
    parts = []
    for first in range(0, query.shape[-2], size):
        rows = slice(first, first + size)
        part = bias if bias is None or bias.ndim < 2 or bias.shape[-2] == 1 else bias[..., rows, :]
        weights = attention_weights(query[..., rows, :], key, part, scale, skip_masked=skip_masked)
        parts.append(matmul(weights, value))
    return np.concatenate(parts, axis=-2)


def mask_bias(mask: Array, like: Array) -> Array:
    """Return what a mask adds to the scores: itself if it is float, else 0 where True and -inf where False."""
    if mask.dtype.kind != "b":
        return mask.astype(like.dtype, casting="same_kind", copy=False)
    return np.asarray(np.where(mask, 0, -math.inf), like.dtype)


def _repeat_heads(x: Array, heads: int) -> Array:
    count = x.shape[-3]
    return x if count == heads else np.repeat(x, heads // count, axis=-3)
