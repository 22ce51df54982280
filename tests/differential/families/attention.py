"""Matrix products, softmax and normalisations."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family


@family(2, 3, 4, weight=4)
def matrix_product(d: Drawing, x: str) -> None:
    """Multiply by a tensor that fits, or by a transposed view of one."""
    shape = d.shape(x)
    fits = [y for y in d.floats() if 2 <= d.rank(y) <= 4 and d.shape(y)[-2] == shape[-1]]
    turned = [y for y in d.floats() if 2 <= d.rank(y) <= 4 and d.shape(y)[-1] == shape[-1]]
    if fits and d.chance(0.4):
        other = d.pick(fits)
    elif turned and d.chance(0.8):
        source = d.pick(turned)
        rank = d.rank(source)
        if rank == 2 and d.chance(0.3):
            found = d.add("torch.t", [source])
        else:
            found = d.add("torch.transpose", [source], named=True, dim0=rank - 2, dim1=rank - 1)
        if not found:
            return  # an input may be larger than what is drawn from it
        (other,) = found
    else:
        batch = d.shape(x)[:-2] if d.chance(0.5) else ()
        other = d.constant((*batch, shape[-1], d.pick((1, 3, 16, 40))))
    ranks = {d.rank(x), d.rank(other)}
    kind = {frozenset((2,)): "torch.mm", frozenset((3,)): "torch.bmm"}.get(frozenset(ranks), "torch.matmul")
    d.add(kind if d.chance(0.4) else "torch.matmul", [x, other])


@family(3, 4, weight=2)
def attention(d: Drawing, x: str) -> None:
    """Scaled products with oneself, masked by a softmax."""
    rank, shape = d.rank(x), d.shape(x)
    turned = d.add("torch.transpose", [x], named=True, dim0=rank - 2, dim1=rank - 1)
    scores = d.add("torch.matmul", [x, *turned]) if turned else []
    scaled = d.add("pnnx.Expression", scores, expr=f"mul(@0,{shape[-1] ** -0.5:.6f})") if scores else []
    weights = d.add("F.softmax", scaled, named=True, dim=-1) if scaled else []
    if weights:
        d.add("torch.matmul", [*weights, x])


@family(weight=3)
def softmax(d: Drawing, x: str) -> None:
    rank = d.rank(x)
    axis = d.number(-rank, rank - 1)
    if d.chance(0.5):
        d.add("nn.Softmax", [x], dim=axis)
    else:
        d.add("F.softmax", [x], named=True, dim=axis)


@family(weight=2)
def layer_norm(d: Drawing, x: str) -> None:
    shape = d.shape(x)
    normalized = shape[-d.number(1, len(shape)) :]
    if d.chance(0.2):
        inputs = [x, d.constant(normalized), d.constant(normalized)]
        d.add("F.layer_norm", inputs, eps=1e-5, normalized_shape=normalized)
        return
    affine = d.chance(0.8)
    weights = {"weight": normalized, "bias": normalized} if affine else {}
    d.add(
        "nn.LayerNorm",
        [x],
        weights=weights,
        elementwise_affine=affine,
        eps=1e-5,
        normalized_shape=normalized,
    )


@family(3, 4, weight=2)
def group_norm(d: Drawing, x: str) -> None:
    channels = d.shape(x)[1]
    groups = d.pick([count for count in range(1, channels + 1) if channels % count == 0])
    if d.chance(0.2):
        inputs = [x, d.constant((channels,)), d.constant((channels,))]
        d.add("F.group_norm", inputs, eps=1e-5, num_groups=groups)
        return
    affine = d.chance(0.8)
    weights = {"weight": (channels,), "bias": (channels,)} if affine else {}
    d.add(
        "nn.GroupNorm",
        [x],
        weights=weights,
        affine=affine,
        eps=1e-5,
        num_channels=channels,
        num_groups=groups,
    )


@family(2, 3, 4, weight=3)
def batch_norm(d: Drawing, x: str) -> None:
    channels = (d.shape(x)[1],)
    if d.chance(0.2):
        mean, variance, scale, shift = (d.constant(channels) for _ in range(4))
        (variance,) = d.add("pnnx.Expression", [variance], expr="add(square(@0),0.5)")
        d.add("F.batch_norm", [x, mean, variance, scale, shift], eps=1e-5)
        return
    affine = d.chance(0.8)
    weights = {"running_mean": channels, "running_var": channels}
    weights |= {"weight": channels, "bias": channels} if affine else {}
    kind = "nn.BatchNorm2d" if d.rank(x) == 4 else "nn.BatchNorm1d"
    d.add(kind, [x], weights=weights, affine=affine, eps=1e-5, num_features=channels[0])


@family(2, 3, 4, weight=3)
def whole_attention(d: Drawing, x: str) -> None:
    """Attention as the exporter keeps it whole: of a tensor to itself or to another, with a mask or without."""
    rank, shape = d.rank(x), d.shape(x)
    fits = d.alike(x)
    if rank != 3 or d.chance(0.6):
        inputs = [x, *[d.pick(fits)] * 2]
        is_masked = d.chance(0.3)
        if is_masked:
            inputs.append(d.constant((shape[-2], shape[-2])))
        given: dict[str, Any] = {} if is_masked else {"attn_mask": None}
        causal = not is_masked and d.chance(0.3)
        d.add("F.scaled_dot_product_attention", inputs, **given, dropout_p=0.0, is_causal=causal)
        return
    features = shape[-1]
    heads = d.pick([count for count in range(1, min(features, 8) + 1) if features % count == 0])
    weights = {
        "in_proj_weight": (3 * features, features),
        "in_proj_bias": (3 * features,),
        "out_proj.weight": (features, features),
        "out_proj.bias": (features,),
    }
    d.add(
        "nn.MultiheadAttention",
        [x] if d.chance(0.6) else [x, *[d.pick(fits)] * 2],
        weights=weights,
        add_bias_kv=False,
        add_zero_attn=False,
        batch_first=d.chance(0.7),
        bias=True,
        embed_dim=features,
        kdim=features,
        num_heads=heads,
        vdim=features,
    )
