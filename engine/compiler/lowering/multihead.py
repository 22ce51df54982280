"""Attention: made of products, softmax and looks at tensors, for which there are kernels."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.compiler.emit.pointwise import Leaf, PointwiseExpression, apply
from engine.compiler.graph import FLOAT, Attention, LayerNorm, Linear, MatrixProduct, Node, Softmax, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.lowering.looks import look
from engine.compiler.lowering.pointwise import pointwise, pointwise_tensor
from engine.compiler.memory.view import View
from engine.dtypes import Array
from engine.kernels.attention_operands import Layout, place_operands
from engine.spec import TensorSpec

_PADDING = 1
"""Kind of a mask (batch, keys) in ATen's numbers."""
_LONG = 1 << 16
"""Scores of one head from which they are computed block by block: a quarter of a megabyte."""
_MAX_AXES = 4
_HEADS = (0, 2, 1, 3)
"""Swaps heads and length."""


@lowers("F.scaled_dot_product_attention")
def scaled_dot_product_attention(context: LoweringContext) -> Node | None:
    """Lower softmax(scale · q kᵀ + mask) v, where heads are as many on both sides."""
    names = ("query", "key", "value")
    if not all(map(context.has_operand, names)) or context.value("enable_gqa"):
        return None
    query, key, value = map(context.tensor, names)
    output = context.outputs[0]
    if not isinstance(output, TensorSpec):
        return None
    scores = (*output.shape[:-1], key.shape[-2])
    masks = _masks(context, scores)
    if masks is None:
        return None
    if context.value("is_causal"):
        hidden = np.triu(np.ones(scores[-2:], np.bool_), 1)
        masks.append(context.make_constant(_hidden(hidden)))
    scale = context.value("scale")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return attend(context, (query, key, value), masks, factor, skip_masked=True)


def _masks(context: LoweringContext, scores: tuple[int, ...]) -> list[Tensor] | None:
    """Return what is added to scores of a shape; None where kernels do not read it."""
    spec = context.spec("attn_mask")
    if spec is None:
        return []
    if np.broadcast_shapes(spec.shape, scores) != scores:
        return None
    is_truth = spec.dtype == np.bool_ and not context.is_constant("attn_mask")
    if context.has_operand("attn_mask") or (is_truth and context.reads("attn_mask")):
        return [context.tensor("attn_mask")]
    mask = context.value("attn_mask")
    if mask is None or mask.dtype not in (np.bool_, FLOAT):
        return None
    return [context.make_constant(_hidden(~mask) if mask.dtype == np.bool_ else mask)]


def _hidden(mask: Array) -> Array:
    """Return -inf where a mask holds, else 0."""
    return np.where(mask, np.float32(-math.inf), np.float32(0))


def attend(
    context: LoweringContext,
    sequences: tuple[Tensor, Tensor, Tensor],
    masks: Sequence[Tensor],
    scale: float,
    *,
    skip_masked: bool,
) -> Attention | MatrixProduct:
    """Add all nodes of softmax(scale · q kᵀ + masks) v but the last, which is returned.

    Args:
        context: the operator.
        sequences: query, key and value, (…, length, features).
        masks: added to the scores; of bools, True where scores are used.
        scale: factor of the products.
        skip_masked: give a query that sees no key weights of 0, instead of NaN.
    """
    query, key, value = sequences
    transposed = (*range(key.rank - 2), key.rank - 1, key.rank - 2)
    keys = look(
        context, key, [key.shape[axis] for axis in transposed], lambda view: view.permuted(transposed)
    )
    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*leading, query.shape[-2], key.shape[-2])
    if _is_long(context, shape, masks):
        seen = apply("mul", Leaf(0), scale)
        for place in range(len(masks)):
            seen = apply("add", seen, Leaf(1 + place))
        inputs = [query, keys, value, *masks]
        return Attention([context.index], inputs, epilogue=seen, skip_masked=skip_masked)
    (scores,) = context.add(MatrixProduct([context.index], [query, keys]), shape)
    expression: PointwiseExpression = apply("mul", Leaf(1), scale)
    for place, mask in enumerate(masks, 2):
        is_truth = mask.dtype == np.bool_
        expression = (
            apply("where", Leaf(place), expression, -math.inf)
            if is_truth
            else apply("add", expression, Leaf(place))
        )
    scaled = pointwise(context, [scores, *masks], expression)
    if scaled is None:
        raise ValueError(f"no kernel for a scale of {scale}")
    (visible,) = context.add(scaled, shape)
    node = Softmax([context.index], [visible], axis=len(shape) - 1, skip_masked=skip_masked)
    (weights,) = context.add(node, shape)
    return MatrixProduct([context.index], [weights, value])


def _is_long(context: LoweringContext, scores: tuple[int, ...], masks: Sequence[Tensor]) -> bool:
    """Whether scores are computed block by block: many of one head, of sizes that are known."""
    are_floats = all(mask.dtype == FLOAT for mask in masks)
    is_many = len(scores) <= _MAX_AXES and math.prod(scores[-2:]) >= _LONG
    return is_many and are_floats and not context.is_dynamic


def linear(context: LoweringContext, x: Tensor, weight: Array, bias: Array | None) -> Tensor:
    """Add a linear layer of an operator that has several."""
    node = Linear([context.index], [x], weight=weight, bias=bias, is_computed=True)
    return context.add(node, (*x.shape[:-1], len(weight)))[0]


def add(context: LoweringContext, left: Tensor, right: Tensor) -> Tensor:
    """Add the sum of two tensors of one shape."""
    node = pointwise(context, [left, right], apply("add", Leaf(1), Leaf(2)))
    if node is None:
        raise ValueError("no kernel for a sum")
    return context.add(node, left.shape)[0]


def multihead(
    context: LoweringContext,
    sequences: tuple[Tensor, Tensor, Tensor],
    weights: tuple[Sequence[Array], Sequence[Array | None]],
    heads: int,
    masks: Sequence[Tensor],
    is_batch_first: bool = True,
) -> Tensor:
    """Add the nodes of attention with several heads, without the projection behind it.

    Args:
        context: the operator.
        sequences: query, key and value, (batch, length, features), or where not `is_batch_first` (length, batch, …).
        weights: projections of query, key and value, and what is added to each.
        heads: number of heads.
        masks: what is added to the scores (batch, heads, queries, keys).
        is_batch_first: which of the first axes is which.

    Returns:
        What the heads found, side by side, in the form of the query.
    """
    query = sequences[0]
    features = len(weights[0][0])
    projected = _projected(context, sequences, weights)
    axes = _HEADS if is_batch_first else (1, 2, 0, 3)

    def split(tensor: Tensor, part: int) -> Tensor:
        first, second = tensor.shape[:2]
        own = (first, second, heads, features // heads)

        def seen(view: View) -> View | None:
            cut = view.sliced(2, part * features, features).reshaped(own)
            return None if cut is None else cut.permuted(axes)

        return look(context, tensor, [own[axis] for axis in axes], seen)

    q, k, v = (split(*each) for each in projected)
    scale = 1 / math.sqrt(features // heads)
    node = attend(context, (q, k, v), masks, scale, skip_masked=False)
    (found,) = context.add(node, (*q.shape[:-1], features // heads))
    back = _HEADS if is_batch_first else (2, 0, 1, 3)
    transposed = look(context, found, [found.shape[axis] for axis in back], lambda view: view.permuted(back))
    shape = (*query.shape[:2], features)
    return look(context, transposed, shape, lambda view: view.reshaped(shape))


def _projected(
    context: LoweringContext,
    sequences: tuple[Tensor, Tensor, Tensor],
    weights: tuple[Sequence[Array], Sequence[Array | None]],
) -> list[tuple[Tensor, int]]:
    """Return the projections of query, key and value: tensors, and which part of its features each is."""
    if sequences[0] is sequences[1] is sequences[2]:
        biases = [bias for bias in weights[1] if bias is not None]
        bias = np.concatenate(biases) if biases else None
        whole = linear(context, sequences[0], np.concatenate(weights[0]), bias)
        return [(whole, part) for part in range(3)]
    return [
        (linear(context, x, weight, bias), 0) for x, weight, bias in zip(sequences, *weights, strict=True)
    ]


@lowers("nn.MultiheadAttention")
def multihead_attention(context: LoweringContext) -> Node | None:
    """Lower attention whose weights are not an output, over batches or single sequences."""
    weights = context.step.layer.arguments
    extras = ("add_zero_attn", "bias_k", "bias_v")
    if context.step.layer.results != (0,) or any(
        weights.get(name) is not None and weights[name] is not False for name in extras
    ):
        return None
    names = [
        n for n in ("query", "key", "value", "key_padding_mask", "attn_mask") if context.spec(n) is not None
    ]
    specs = [spec for spec in map(context.spec, names) if spec is not None]
    matrices, biases = _input_weights(weights)
    is_batch_first, heads = bool(context.value("batch_first")), context.value("num_heads")
    layout = Layout(heads, tuple(matrix.shape[1] for matrix in matrices), is_batch_first)
    places = place_operands(specs, names[-1] == "attn_mask", layout)
    sequences = [names[place] for place in places[:3]]
    if not all(map(context.has_operand, sequences)):
        return None
    is_single = specs[places.query].rank == 2
    is_batch_first |= is_single
    batch = 1 if is_single else specs[places.query].shape[0 if is_batch_first else 1]
    masks = []
    for place, axes in ((places.attn_mask, None), (places.key_padding_mask, (batch, 1, 1, -1))):
        if place is not None:
            mask = _additive(context, names[place], axes or _of_heads(specs[place].shape, batch, heads))
            if mask is None:
                return None
            masks.append(mask)
    tensors = {name: _batched(context, context.tensor(name)) for name in dict.fromkeys(sequences)}
    query, key, value = (tensors[name] for name in sequences)
    found = multihead(context, (query, key, value), (matrices, biases), heads, masks, is_batch_first)
    if is_single:
        shape = found.shape[1:]
        found = look(context, found, shape, lambda view: view.reshaped(shape))
    return Linear(
        [context.index],
        [found],
        weight=weights["out_proj.weight"],
        bias=weights.get("out_proj.bias"),
        is_computed=True,
    )


def _input_weights(weights: Any) -> tuple[list[Array], list[Array | None]]:
    """Return the projections of query, key and value, and what is added to each."""
    packed, bias = weights.get("in_proj_weight"), weights.get("in_proj_bias")
    matrices = (
        [weights[f"{letter}_proj_weight"] for letter in "qkv"] if packed is None else [*np.split(packed, 3)]
    )
    return matrices, [None] * 3 if bias is None else [*np.split(bias, 3)]


def _batched(context: LoweringContext, tensor: Tensor) -> Tensor:
    """Return a sequence as a batch of one, unless it is a batch."""
    shape = (1, *tensor.shape)
    return tensor if tensor.rank == 3 else look(context, tensor, shape, lambda view: view.reshaped(shape))


def _of_heads(shape: tuple[int, ...], batch: int, heads: int) -> tuple[int, ...]:
    """Return a mask's shape among (batch, heads, queries, keys)."""
    return (batch, heads, *shape[1:]) if len(shape) == 3 else (1, 1, *shape)


def _additive(context: LoweringContext, name: str, shape: tuple[int, ...]) -> Tensor | None:
    """Return what a mask adds to the scores, in a shape; None where kernels do not read it. True hides a key."""
    spec = context.spec(name)
    if context.is_constant(name):
        mask = context.value(name)
        if mask is None or mask.dtype not in (np.bool_, FLOAT):
            return None
        return context.make_constant((_hidden(mask) if mask.dtype == np.bool_ else mask).reshape(shape))
    if not context.has_operand(name) and (spec is None or spec.dtype != np.bool_ or not context.reads(name)):
        return None
    tensor = context.tensor(name)
    if tensor.dtype == np.bool_:
        tensor = pointwise_tensor(context, tensor, apply("where", Leaf(1), -math.inf, 0.0))
    sizes = tuple(tensor.shape[-1] if size < 0 else size for size in shape)
    return look(context, tensor, sizes, lambda view: view.reshaped(sizes))


def _native_mask(context: LoweringContext) -> list[Tensor] | None:
    """Return the constant mask of ATen's operators, which hides where it is not 0; None if only a run knows it."""
    if context.spec("mask") is None:
        return []
    mask = context.value("mask") if context.is_constant("mask") else None
    if mask is None:
        return None
    hidden = mask != 0
    hidden = hidden[:, None, None] if context.value("mask_type") == _PADDING else hidden
    return [context.make_constant(_hidden(hidden))]


def _native_heads(
    context: LoweringContext, sequences: tuple[Tensor, Tensor, Tensor], masks: list[Tensor], heads: int
) -> Tensor:
    matrices, biases = (np.split(context.value(name), 3) for name in ("qkv_weight", "qkv_bias"))
    return multihead(context, sequences, (matrices, list(biases)), heads, masks)


@lowers("aten::_native_multi_head_attention")
def native_multi_head_attention(context: LoweringContext) -> Node | None:
    """Lower the fast path of nn.MultiheadAttention, without weights for the caller."""
    names = ("query", "key", "value")
    weights = ("qkv_weight", "qkv_bias", "proj_weight", "proj_bias")
    masks = _native_mask(context)
    is_plain = context.step.layer.results == (0,) and all(map(context.has_operand, names))
    if masks is None or not is_plain or not all(map(context.is_constant, weights)):
        return None
    places = context.step.layer.operand_places
    slots = {context.step.inputs[places[name]]: context.tensor(name) for name in names}
    query, key, value = (slots[context.step.inputs[places[name]]] for name in names)
    found = _native_heads(context, (query, key, value), masks, context.value("num_head"))
    matrix, bias = context.value("proj_weight"), context.value("proj_bias")
    return Linear([context.index], [found], weight=matrix, bias=bias, is_computed=True)


@lowers("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer(context: LoweringContext) -> Node | None:
    """Lower the fast path of nn.TransformerEncoderLayer."""
    weights = ("qkv_weight", "qkv_bias", "proj_weight", "proj_bias", "norm_weight_1", "norm_bias_1")
    others = ("norm_weight_2", "norm_bias_2", "ffn_weight_1", "ffn_bias_1", "ffn_weight_2", "ffn_bias_2")
    masks = _native_mask(context)
    if (
        masks is None
        or not context.has_operand("src")
        or not all(map(context.is_constant, (*weights, *others)))
    ):
        return None
    heads, is_first, eps = context.value("num_heads"), bool(context.value("norm_first")), context.value("eps")

    def normalised(x: Tensor, place: int) -> LayerNorm:
        scale, shift = context.value(f"norm_weight_{place}"), context.value(f"norm_bias_{place}")
        return LayerNorm([context.index], [x], axes=1, weight=scale, bias=shift, eps=eps)

    def norm(x: Tensor, place: int) -> Tensor:
        return context.add(normalised(x, place), x.shape)[0]

    x = context.tensor("src")
    inner = norm(x, 1) if is_first else x
    found = _native_heads(context, (inner, inner, inner), masks, heads)
    x = add(context, x, linear(context, found, context.value("proj_weight"), context.value("proj_bias")))
    x = x if is_first else norm(x, 1)
    inner = norm(x, 2) if is_first else x
    hidden = linear(context, inner, context.value("ffn_weight_1"), context.value("ffn_bias_1"))
    activation = pointwise(context, [hidden], apply("gelu" if context.value("use_gelu") else "relu", Leaf(1)))
    if activation is None:
        raise ValueError("no kernel for an activation")
    (active,) = context.add(activation, hidden.shape)
    fed = linear(context, active, context.value("ffn_weight_2"), context.value("ffn_bias_2"))
    if is_first:
        return pointwise(context, [x, fed], apply("add", Leaf(1), Leaf(2)))
    return normalised(add(context, x, fed), 2)
