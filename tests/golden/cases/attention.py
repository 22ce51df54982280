"""Attention."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import Input, LayerCase, boolean, f32, function, module, tensor


def sdpa(name: str, *inputs: Input, **arguments: Any) -> LayerCase:
    """Make a case of scaled_dot_product_attention(query, key, value[, mask], **arguments)."""
    options = {key: arguments.pop(key) for key in ("also", "rtol", "atol") if key in arguments}

    def call(torch: Any, *tensors: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*tensors, **arguments)

    return function("F.scaled_dot_product_attention", name, call, *inputs, **options)


QUERY, KEY = f32(2, 4, 5, 6), f32(2, 4, 7, 6)
FEW = f32(2, 2, 7, 6)

SDPA: list[LayerCase] = [
    sdpa("plain", QUERY, KEY, KEY, also=((f32(1, 3, 2, 8), f32(1, 3, 4, 8), f32(1, 3, 4, 8)),)),
    sdpa("rank2", f32(5, 6), f32(7, 6), f32(7, 6)),
    sdpa("rank3", f32(3, 5, 6), f32(3, 7, 6), f32(3, 7, 4)),
    sdpa("mask", QUERY, KEY, KEY, f32(5, 7)),
    sdpa("mask_per_head", QUERY, KEY, KEY, f32(2, 4, 5, 7)),
    sdpa("bool_mask", QUERY, KEY, KEY, boolean(2, 1, 5, 7)),
    sdpa("all_masked_rows", f32(1, 1, 40, 6), f32(1, 1, 2, 6), f32(1, 1, 2, 6), boolean(40, 2)),
    sdpa("causal", QUERY, KEY, KEY, is_causal=True),
    sdpa("causal_tall", KEY, QUERY, QUERY, is_causal=True),
    sdpa("scale", QUERY, KEY, KEY, scale=0.2),
    sdpa("grouped", QUERY, FEW, FEW, enable_gqa=True),
    sdpa("grouped_mask", QUERY, FEW, FEW, f32(5, 7), enable_gqa=True),
    sdpa("grouped_causal_scale", QUERY, FEW, FEW, enable_gqa=True, is_causal=True, scale=0.7),
    sdpa("f64", *(tensor("f64", 1, 2, 3, 4),) * 3, rtol=1e-10, atol=1e-10),
    sdpa("f16", *(tensor("f16", 1, 2, 3, 4),) * 3, rtol=2e-3, atol=2e-3),
]


def trained(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give an attention biases other than zeros."""

    def make(nn: Any) -> Any:
        attention = build(nn)
        for name, parameter in attention.named_parameters():
            if "bias" in name:
                parameter.data.uniform_(-1, 1)
        return attention

    return make


def mha(
    name: str, call: Callable[..., Any], *inputs: Input, also: Any = (), outputs: Any = None, **options: Any
) -> LayerCase:
    """Make a case of a network that calls nn.MultiheadAttention(8, 2) its own way: `call(layer, *tensors)`."""

    def build(nn: Any) -> Any:
        class Network(nn.Module):  # type: ignore[misc]  # nn is Any here
            def __init__(self) -> None:
                super().__init__()
                self.layer = trained(lambda nn: nn.MultiheadAttention(8, 2, **options))(nn)

            def forward(self, *tensors: Any) -> Any:
                return call(self.layer, *tensors)

        return Network()

    return module("nn.MultiheadAttention", name, build, *inputs, also=also, outputs=outputs)


SQUARE = f32(8, 8, 8)
"""Queries, batch and features alike: the weights have the shape of the output."""
Q, K = f32(5, 3, 8), f32(7, 3, 8)
ROOMY = {"low": 0.0, "high": 1.0}


def some_hidden(mask: Any) -> Any:
    """Make a mask of bools that leaves every query a key to see."""
    hidden = mask > 0.7
    return hidden.logical_and(hidden.cumsum(-1) < 4)


MULTIHEAD: list[LayerCase] = [
    mha("plain", lambda m, q, k, v: m(q, k, v), Q, K, K, also=((f32(2, 1, 8), f32(4, 1, 8), f32(4, 1, 8)),)),
    mha("self", lambda m, x: m(x, x, x), Q),
    mha("self_output_only", lambda m, x: m(x, x, x)[0], Q, also=((f32(2, 4, 8),),)),
    mha("self_no_weights", lambda m, x: m(x, x, x, need_weights=False)[0], Q),
    mha("weights_only", lambda m, x: m(x, x, x)[1], Q),
    mha("same_shapes_output", lambda m, x: m(x, x, x)[0], SQUARE, outputs="attn_output"),
    mha("same_shapes_weights", lambda m, x: m(x, x, x)[1], SQUARE, outputs="attn_output_weights"),
    mha(
        "same_shapes_swapped",
        lambda m, x: m(x, x, x)[::-1],
        SQUARE,
        outputs="attn_output_weights,attn_output",
    ),
    mha("weights_of_each_head", lambda m, q, k: m(q, k, k, average_attn_weights=False), Q, K),
    mha("cross", lambda m, q, k: m(q, k, k), Q, K),
    mha("no_bias", lambda m, q, k, v: m(q, k, v), Q, K, K, bias=False),
    mha(
        "batch_first",
        lambda m, q, k, v: m(q, k, v),
        *(f32(2, 5, 8), f32(2, 7, 8), f32(2, 7, 8)),
        batch_first=True,
    ),
    mha("kdim_vdim", lambda m, q, k, v: m(q, k, v), Q, f32(7, 3, 4), f32(7, 3, 6), kdim=4, vdim=6),
    mha(
        "kdim_vdim_no_bias",
        lambda m, q, k, v: m(q, k, v),
        Q,
        f32(7, 3, 4),
        f32(7, 3, 6),
        kdim=4,
        vdim=6,
        bias=False,
    ),
    mha("kdim", lambda m, q, k: m(q, k, q), Q, f32(5, 3, 4), kdim=4),
    mha("bias_kv", lambda m, q, k: m(q, k, k), Q, K, add_bias_kv=True),
    mha("zero_attn", lambda m, q, k: m(q, k, k), Q, K, add_zero_attn=True),
    mha(
        "bias_kv_zero_attn",
        lambda m, q, k, a: m(q, k, k, attn_mask=a),
        Q,
        K,
        f32(5, 7),
        add_bias_kv=True,
        add_zero_attn=True,
    ),
    mha("mask", lambda m, q, k, a: m(q, k, k, attn_mask=a), Q, K, f32(5, 7)),
    mha("self_mask", lambda m, q, a: m(q, q, q, attn_mask=a), Q, f32(5, 5)),
    mha("self_mask_no_weights", lambda m, q, a: m(q, q, q, attn_mask=a, need_weights=False)[0], Q, f32(5, 5)),
    mha("mask_of_each_head", lambda m, q, k, a: m(q, k, k, attn_mask=a), Q, K, f32(6, 5, 7)),
    mha("bool_mask", lambda m, q, k, a: m(q, k, k, attn_mask=some_hidden(a)), Q, K, f32(5, 7, **ROOMY)),
    mha("padding", lambda m, q, k, p: m(q, k, k, key_padding_mask=p), Q, K, f32(3, 7)),
    mha(
        "bool_padding",
        lambda m, q, k, p: m(q, k, k, key_padding_mask=some_hidden(p)),
        Q,
        K,
        f32(3, 7, **ROOMY),
    ),
    mha(
        "both", lambda m, q, k, p, a: m(q, k, k, key_padding_mask=p, attn_mask=a), Q, K, f32(3, 7), f32(5, 7)
    ),
    mha(
        "both_qkv",
        lambda m, q, k, v, p, a: m(q, k, v, key_padding_mask=p, attn_mask=a),
        *(Q, K, K, f32(3, 7), f32(6, 5, 7)),
    ),
    mha(
        "both_bool",
        lambda m, q, k, p, a: m(q, k, k, key_padding_mask=some_hidden(p), attn_mask=some_hidden(a)),
        *(Q, K, f32(3, 7, **ROOMY), f32(5, 7, **ROOMY)),
    ),
    mha(
        "both_bool_qkv",
        lambda m, q, k, v, p, a: m(q, k, v, key_padding_mask=some_hidden(p), attn_mask=some_hidden(a)),
        *(Q, K, K, f32(3, 7, **ROOMY), f32(5, 7, **ROOMY)),
    ),
    mha("unbatched", lambda m, q, k, v: m(q, k, v), f32(5, 8), f32(7, 8), f32(7, 8)),
    mha("unbatched_mask", lambda m, q, k, a: m(q, k, k, attn_mask=a), f32(5, 8), f32(7, 8), f32(5, 7)),
    mha("unbatched_padding", lambda m, q, k, p: m(q, k, k, key_padding_mask=p), f32(5, 8), f32(7, 8), f32(7)),
    mha(
        "unbatched_each_head",
        lambda m, q: m(q, q, q, average_attn_weights=False),
        f32(5, 8),
        batch_first=True,
    ),
    module(
        "nn.MultiheadAttention",
        "f64",
        lambda nn: nn.MultiheadAttention(4, 2).double(),
        *(tensor("f64", 3, 2, 4),) * 3,
    ),
]

CASES: list[LayerCase] = [*SDPA, *MULTIHEAD]
