"""What nn.TransformerEncoderLayer and subclasses of nn.MultiheadAttention run as in PyTorch's fast path.

The exporter leaves it as a line of its own, `aten::_transformer_encoder_layer_fwd` or
`aten::_native_multi_head_attention`, with weights and numbers as operands in ATen's order. Sequences are
(batch, length, features). A mask hides what it is not zero at, whatever its dtype: -inf and True alike.
"""

from typing import Any

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.activation import activate, gelu, relu
from engine.kernels.casting import narrow, widen
from engine.kernels.matrix import linear
from engine.kernels.multihead import Projections, multihead
from engine.kernels.normalization import layer_norm
from engine.layers.checks import check_dtype, check_kind, check_rank, check_shape
from engine.spec import TensorSpec

_QUERIES_BY_KEYS, _PADDING, _MERGED = range(3)
"""Kinds of mask: (queries, keys), (batch, keys), or (batch, heads, queries, keys)."""


def _check_heads(width: int, embed_dim: int, num_heads: int) -> None:
    if embed_dim != width:
        raise ArgumentError("embed_dim", f"is {embed_dim}", f"{width}, as the weights have")
    if num_heads < 1 or width % num_heads:
        raise ArgumentError("num_heads", f"is {num_heads}", f"a divisor of {width} features")


def _check_weights(
    input: TensorSpec, weights: dict[str, TensorSpec], shapes: dict[str, tuple[int, ...]]
) -> None:
    for name, shape in shapes.items():
        check_shape(name, weights[name], shape)
        check_dtype(name, weights[name], input)


def _mask_shape(batch: int, heads: int, queries: int, keys: int, kind: int | None) -> tuple[int, ...]:
    shapes = {
        _QUERIES_BY_KEYS: (queries, keys),
        _PADDING: (batch, keys),
        _MERGED: (batch, heads, queries, keys),
    }
    if kind not in shapes:
        raise ArgumentError("mask_type", f"is {kind}", "0, 1 or 2 where there is a mask")
    return shapes[kind]


def _check_attention(
    query: TensorSpec,
    key: TensorSpec,
    heads: int,
    mask: TensorSpec | None,
    mask_type: int | None,
    weights: dict[str, TensorSpec],
) -> None:
    """Check (batch, length, features) inputs against the packed projections and the mask."""
    check_kind("query", query, "f")
    for name, spec in (("query", query), ("key", key)):
        check_rank(name, spec, 3)
        check_dtype(name, spec, query)
    width = query.shape[-1]
    shapes = {
        "qkv_weight": (3 * width, width),
        "qkv_bias": (3 * width,),
        "proj_weight": (width, width),
        "proj_bias": (width,),
    }
    _check_weights(query, weights, shapes)
    if mask is not None:
        wanted = _mask_shape(query.shape[0], heads, query.shape[1], key.shape[1], mask_type)
        check_kind("mask", mask, "bf")
        check_shape("mask", mask, wanted)


def _bias(mask: Array | None, mask_type: int | None, dtype: Any) -> Array | None:
    """Return what a mask adds to the scores, broadcasting to (batch, heads, queries, keys)."""
    if mask is None:
        return None
    hidden = mask != 0
    if mask_type == _PADDING:
        hidden = hidden[:, np.newaxis, np.newaxis]
    return np.asarray(np.where(hidden, -np.inf, 0), dtype)


def _attend(
    query: Array,
    key: Array,
    value: Array,
    heads: int,
    weights: tuple[Array, Array, Array, Array],
    mask: Array | None,
    mask_type: int | None,
    needs_weights: bool,
) -> tuple[Array, Array | None]:
    """Return output and weights of attention, (batch, heads, queries, keys), or None."""
    packed, packed_bias, output, output_bias = weights
    q, k, v = np.split(packed, 3)
    projections = Projections(
        query=q,
        key=k,
        value=v,
        bias=packed_bias,
        packed=packed,
        output=output,
        output_bias=output_bias,
        extra_key=None,
        extra_value=None,
    )
    bias = _bias(mask, mask_type, query.dtype)
    return multihead(query, key, value, projections, heads, bias, False, needs_weights)


def _infer_encoder_layer(
    src: TensorSpec,
    embed_dim: int,
    num_heads: int,
    mask: TensorSpec | None,
    mask_type: int | None,
    **weights: Any,
) -> TensorSpec:
    check_rank("src", src, 3)
    _check_heads(src.shape[-1], embed_dim, num_heads)
    _check_attention(src, src, num_heads, mask, mask_type, weights)
    check_rank("ffn_weight_1", weights["ffn_weight_1"], 2)
    width, hidden = embed_dim, weights["ffn_weight_1"].shape[0]
    norms = ("norm_weight_1", "norm_bias_1", "norm_weight_2", "norm_bias_2")
    shapes = dict.fromkeys(norms, (width,)) | {
        "ffn_weight_1": (hidden, width),
        "ffn_bias_1": (hidden,),
        "ffn_weight_2": (width, hidden),
        "ffn_bias_2": (width,),
    }
    _check_weights(src, weights, shapes)
    return src


def _count_encoder_layer(src: TensorSpec, ffn_weight_1: TensorSpec) -> int:
    """Count the projections, the scores, the sums of values and the two products behind them."""
    batch, length, width = src.shape
    return batch * length * (4 * width * width + 2 * length * width + 2 * ffn_weight_1.size)


@layer("aten::_transformer_encoder_layer_fwd", infer=_infer_encoder_layer, multiply_adds=_count_encoder_layer)
def transformer_encoder_layer(
    src: Array,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Array,
    norm_bias_1: Array,
    norm_weight_2: Array,
    norm_bias_2: Array,
    ffn_weight_1: Array,
    ffn_bias_1: Array,
    ffn_weight_2: Array,
    ffn_bias_2: Array,
    mask: Array | None = None,
    mask_type: int | None = None,
) -> Array:
    """Attend to itself, then feed forward; each with a residual, normalised after it or, `norm_first`, before."""
    del embed_dim
    weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    activation = gelu if use_gelu else relu

    def attend(x: Array) -> Array:
        return _attend(x, x, x, num_heads, weights, mask, mask_type, False)[0]

    def feed_forward(x: Array) -> Array:
        return linear(activate(activation, linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    x = widen(src)
    steps = ((attend, norm_weight_1, norm_bias_1), (feed_forward, norm_weight_2, norm_bias_2))
    for step, weight, bias in steps:
        if norm_first:
            x = x + step(layer_norm(x, 1, weight, bias, eps))
        else:
            x = layer_norm(x + step(x), 1, weight, bias, eps)
    return narrow(x, src.dtype)


def _infer_native_attention(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    embed_dim: int,
    num_head: int,
    mask: TensorSpec | None,
    need_weights: bool,
    average_attn_weights: bool,
    mask_type: int | None,
    **weights: TensorSpec,
) -> tuple[TensorSpec, TensorSpec]:
    _check_heads(query.shape[-1], embed_dim, num_head)
    _check_attention(query, key, num_head, mask, mask_type, weights)
    check_shape("value", value, key.shape)
    heads = () if average_attn_weights else (num_head,)
    shape = (query.shape[0], *heads, query.shape[1], key.shape[1]) if need_weights else (0,)
    return query, query.with_shape(shape)


@layer("aten::_native_multi_head_attention", infer=_infer_native_attention)
def native_multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Array | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Array, Array]:
    """Attend with several heads: the output, and the weights, averaged over the heads or not; empty if unneeded."""
    del embed_dim
    weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    sequences = (widen(query), widen(key), widen(value))
    output, attention = _attend(*sequences, num_head, weights, mask, mask_type, need_weights)
    if attention is None:
        attention = np.empty((0,), query.dtype)
    elif average_attn_weights:
        attention = attention.mean(axis=1)
    return narrow(output, query.dtype), narrow(attention, query.dtype)
