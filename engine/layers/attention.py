"""Scaled dot-product attention."""

from engine.binding.registry import layer
from engine.dtypes import Array, pnnx_name
from engine.errors import ArgumentError
from engine.kernels.attention import attend
from engine.kernels.axes import broadcast
from engine.layers.checks import broadcasts_to, check_dtype, check_kind, check_min_rank, check_size
from engine.spec import TensorSpec


def _heads(query: TensorSpec, spec: TensorSpec, name: str) -> TensorSpec:
    """Return a key or value as it is once its heads are repeated to as many as the query has."""
    check_min_rank(name, spec, 3)
    check_min_rank("query", query, 3)
    wanted, count = query.shape[-3], spec.shape[-3]
    if count < 1 or wanted % count:
        raise ArgumentError(name, f"{count} heads", f"a divisor of the query's {wanted} heads")
    return spec.with_shape((*spec.shape[:-3], wanted, *spec.shape[-2:]))


def _check_mask(attn_mask: TensorSpec | None, query: TensorSpec, scores: tuple[int, ...]) -> None:
    if attn_mask is None:
        return
    if attn_mask.dtype.kind != "b" and pnnx_name(attn_mask.dtype) != "f32":
        check_dtype("attn_mask", attn_mask, query)
    check_min_rank("attn_mask", attn_mask, 2)
    if not broadcasts_to(attn_mask.shape, scores):
        raise ArgumentError("attn_mask", f"shape {attn_mask.shape}", f"one that broadcasts to {scores}")


def _infer_attention(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, attn_mask: TensorSpec | None, enable_gqa: bool
) -> TensorSpec:
    check_kind("query", query, "f")
    for name, spec in (("query", query), ("key", key), ("value", value)):
        check_min_rank(name, spec, 2)
        if spec.dtype != query.dtype:
            raise ArgumentError(
                name, f"dtype {pnnx_name(spec.dtype)}", f"{pnnx_name(query.dtype)} as the query has"
            )
    if enable_gqa:
        key, value = _heads(query, key, "key"), _heads(query, value, "value")
    check_size("key", key, key.rank - 1, query.shape[-1])
    check_size("value", value, value.rank - 2, key.shape[-2])
    leading = broadcast(query.shape[:-2], key.shape[:-2], argument="key")
    leading = broadcast(leading, value.shape[:-2], argument="value")
    _check_mask(attn_mask, query, (*leading, query.shape[-2], key.shape[-2]))
    return query.with_shape((*leading, query.shape[-2], value.shape[-1]))


def _count_attention(outputs: tuple[TensorSpec, ...], query: TensorSpec, key: TensorSpec) -> int:
    """Count the products of queries and keys, and of weights and values."""
    *leading, queries, width = outputs[0].shape
    pairs = key.shape[-2] * queries
    for size in leading:
        pairs *= size
    return pairs * (query.shape[-1] + width)


@layer("F.scaled_dot_product_attention", infer=_infer_attention, multiply_adds=_count_attention)
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """Compute softmax(scale · q kᵀ + mask) v; no weight is dropped, as the model is not being trained."""
    return attend(query, key, value, attn_mask, is_causal, scale, enable_gqa)
