"""nn.MultiheadAttention."""

from typing import Any

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.results import Results
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.attention import mask_bias
from engine.kernels.attention_operands import Layout, OperandPlaces, place_operands
from engine.kernels.casting import narrow, widen
from engine.kernels.multihead import Projections, multihead
from engine.layers.checks import check_kind, check_rank, check_shape, check_size
from engine.spec import TensorSpec

_ALL = (0, 1, 2)
_RESULTS = Results(("attn_output", "attn_output_weights", "attn_output_weights_of_heads"))


def _check_weights(width: int, heads: int, **weights: TensorSpec | None) -> None:
    """Check that the projections fit each other and the number of heads."""
    if heads < 1 or width % heads:
        raise ArgumentError("num_heads", f"is {heads}", f"a divisor of {width} features")
    shapes = {
        "in_proj_weight": (3 * width, width),
        "q_proj_weight": (width, width),
        "in_proj_bias": (3 * width,),
        "out_proj.weight": (width, width),
        "out_proj.bias": (width,),
        "bias_k": (1, 1, width),
        "bias_v": (1, 1, width),
    }
    if weights.get("out_proj.weight") is None:
        raise ArgumentError("out_proj.weight", "is missing", f"a tensor of shape {shapes['out_proj.weight']}")
    for name, shape in shapes.items():
        check_shape(name, weights.get(name), shape)
    for name in ("k_proj_weight", "v_proj_weight"):
        weight = weights.get(name)
        if weight is not None:
            check_rank(name, weight, 2)
            check_size(name, weight, 0, width)


def _layout(num_heads: int, batch_first: bool, **weights: Any) -> Layout:
    """Read the widths of the inputs off the weights, which are arrays or specs."""
    packed = weights.get("in_proj_weight")
    if packed is not None:
        return Layout(num_heads, (packed.shape[-1],) * 3, batch_first)
    single = [weights.get(f"{letter}_proj_weight") for letter in "qkv"]
    if any(weight is None for weight in single):
        raise ArgumentError(
            "in_proj_weight", "is missing", "it, or q_proj_weight, k_proj_weight and v_proj_weight"
        )
    query, key, value = (weight.shape[-1] for weight in single if weight is not None)
    return Layout(num_heads, (query, key, value), batch_first)


def _places(operands: list[Any], attn_mask: Any, layout: Layout) -> OperandPlaces:
    try:
        return place_operands(operands, attn_mask is not None, layout)
    except ValueError as error:
        raise ArgumentError("query", str(error), "query, key, value and up to two masks") from error


def _present(*operands: Any) -> list[Any]:
    return [operand for operand in operands if operand is not None]


def _check_sequences(query: TensorSpec, key: TensorSpec, value: TensorSpec, layout: Layout) -> None:
    for name, spec, width in zip(("query", "key", "value"), (query, key, value), layout.widths, strict=True):
        check_kind(name, spec, "f")
        check_rank(name, spec, *((2, 3) if name == "query" else (query.rank,)))
        check_size(name, spec, spec.rank - 1, width)
    check_shape("value", value.with_shape(value.shape[:-1]), key.shape[:-1])
    if query.rank == 3:
        batch = 0 if layout.batch_first else 1
        check_size("key", key, batch, query.shape[batch])


def _check_mask(name: str, mask: TensorSpec | None, *shapes: tuple[int, ...]) -> None:
    if mask is None:
        return
    check_kind(name, mask, "bf")
    if mask.shape not in shapes:
        raise ArgumentError(name, f"shape {mask.shape}", " or ".join(f"shape {shape}" for shape in shapes))


def _infer_multihead(
    query: TensorSpec,
    key: TensorSpec | None,
    value: TensorSpec | None,
    key_padding_mask: TensorSpec | None,
    attn_mask: TensorSpec | None,
    num_heads: int,
    batch_first: bool,
    add_zero_attn: bool,
    **weights: TensorSpec | None,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    layout = _layout(num_heads, batch_first, **weights)
    _check_weights(layout.widths[0], num_heads, **weights)
    operands = _present(query, key, value, key_padding_mask, attn_mask)
    places = _places(operands, attn_mask, layout)
    target, source = operands[places.query], operands[places.key]
    _check_sequences(target, source, operands[places.value], layout)
    batch, queries = _batch_and_length(target.shape, batch_first)
    _, keys = _batch_and_length(source.shape, batch_first)
    _check_mask(
        "attn_mask", _at(operands, places.attn_mask), (queries, keys), (batch * num_heads, queries, keys)
    )
    padding_shape = (batch, keys) if target.rank == 3 else (keys,)
    _check_mask("key_padding_mask", _at(operands, places.key_padding_mask), padding_shape)
    seen = keys + (weights.get("bias_k") is not None) + add_zero_attn
    leading = (batch,) if target.rank == 3 else ()
    averaged = target.with_shape((*leading, queries, seen))
    return target, averaged, target.with_shape((*leading, num_heads, queries, seen))


def _at(operands: list[Any], place: int | None) -> Any:
    return None if place is None else operands[place]


def _batch_and_length(shape: tuple[int, ...], batch_first: bool) -> tuple[int, int]:
    if len(shape) == 2:
        return 1, shape[0]
    return (shape[0], shape[1]) if batch_first else (shape[1], shape[0])


def _count_multihead(outputs: tuple[TensorSpec, ...], query: TensorSpec, **arguments: Any) -> int:
    """Count the four projections, the scores, and the sums of values."""
    del outputs
    operands = ("key", "value", "key_padding_mask", "attn_mask")
    specs = _present(query, *(arguments[name] for name in operands))
    layout = _layout(**{name: value for name, value in arguments.items() if name not in operands})
    places = _places(specs, arguments["attn_mask"], layout)
    width = layout.widths[0]
    batch, queries = _batch_and_length(specs[places.query].shape, layout.batch_first)
    _, keys = _batch_and_length(specs[places.key].shape, layout.batch_first)
    projections = queries * 2 * width + keys * sum(layout.widths[1:])
    return batch * width * (projections + 2 * queries * keys)


@layer("nn.MultiheadAttention", infer=_infer_multihead, multiply_adds=_count_multihead, results=_RESULTS)
def multihead_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    key_padding_mask: Array | None = None,
    attn_mask: Array | None = None,
    *,
    num_heads: int,
    batch_first: bool = False,
    add_zero_attn: bool = False,
    results: Ints = _ALL,
    **weights: Array,
) -> tuple[Array | None, ...]:
    """Attend with several heads: the output, its weights averaged over the heads, and the weights of each head.

    Sequences are (length, batch, features), with `batch_first` (batch, length, features), or without a batch
    (length, features).
    """
    layout = _layout(num_heads, batch_first, **weights)
    operands = _present(query, key, value, key_padding_mask, attn_mask)
    places = _places(operands, attn_mask, layout)
    sequences = {place: _batched(operands[place], batch_first) for place in places[:3]}
    q, k, v = sequences[places.query], sequences[places.key], sequences[places.value]
    bias = _score_bias(_at(operands, places.attn_mask), _at(operands, places.key_padding_mask), q, num_heads)
    needs_weights = 1 in results or 2 in results
    output, attention = multihead(
        q, k, v, _projections(**weights), num_heads, bias, add_zero_attn, needs_weights
    )
    target = operands[places.query]
    if target.ndim == 2:
        output, attention = output[0], None if attention is None else attention[0]
    elif not batch_first:
        output = output.swapaxes(0, 1)
    return (
        narrow(output, target.dtype),
        narrow(attention.mean(axis=-3), target.dtype) if attention is not None and 1 in results else None,
        narrow(attention, target.dtype) if attention is not None and 2 in results else None,
    )


def _batched(x: Array, batch_first: bool) -> Array:
    """Bring a sequence into the form (batch, length, features), in the dtype that is computed in."""
    if x.ndim == 2:
        return widen(x[np.newaxis])
    return widen(x if batch_first else x.swapaxes(0, 1))


def _score_bias(attn_mask: Array | None, keys_mask: Array | None, query: Array, heads: int) -> Array | None:
    """Return what the masks add to the scores, broadcasting to (batch, heads, queries, keys). True hides a key."""
    batch = len(query)
    bias = None
    if attn_mask is not None:
        bias = mask_bias(~attn_mask if attn_mask.dtype.kind == "b" else attn_mask, query)
        bias = bias.reshape(batch, heads, *bias.shape[1:]) if bias.ndim == 3 else bias
    if keys_mask is not None:
        hidden = mask_bias(~keys_mask if keys_mask.dtype.kind == "b" else keys_mask, query)
        hidden = hidden.reshape(batch, 1, 1, hidden.shape[-1])
        bias = hidden if bias is None else bias + hidden
    return bias


def _projections(**weights: Array) -> Projections:
    packed = weights.get("in_proj_weight")
    if packed is not None:
        query, key, value = np.split(packed, 3)
    else:
        query, key, value = (weights[f"{letter}_proj_weight"] for letter in "qkv")
    return Projections(
        query,
        key,
        value,
        bias=weights.get("in_proj_bias"),
        packed=packed,
        output=weights["out_proj.weight"],
        output_bias=weights.get("out_proj.bias"),
        extra_key=weights.get("bias_k"),
        extra_value=weights.get("bias_v"),
    )
