"""Layers of random modules over sequences (n, steps, features) and vectors (n, features); the features are known."""

from random import Random

import torch
from torch import nn

from tests.differential.modules.images import Make
from tests.differential.modules.layers import Apply, Attention, Join, Recurrence, Turned
from tests.differential.modules.pointwise import activation


def linear(random: Random, features: int) -> nn.Module:
    return nn.Linear(features, random.randint(1, 70), bias=random.random() < 0.8)


def norm(random: Random, features: int) -> nn.Module:
    if random.random() < 0.3:
        layer = nn.BatchNorm1d(features)
        nn.init.uniform_(layer.running_mean, -0.5, 0.5)
        nn.init.uniform_(layer.running_var, 0.3, 2)
        return Turned(layer)
    return nn.LayerNorm(features, elementwise_affine=random.random() < 0.8)


def _heads(random: Random, features: int) -> int:
    return random.choice([heads for heads in (1, 2, 3, 4, 8) if features % heads == 0])


def attention(random: Random, features: int) -> nn.Module:
    heads = _heads(random, features)
    if random.random() < 0.5:
        return Attention(features, heads, random.random() < 0.3)
    return Join(
        Apply("x + y", lambda x, y: x + y), nn.Sequential(nn.LayerNorm(features), _product(features, heads))
    )


def _product(features: int, heads: int) -> nn.Module:
    size = features // heads

    def split(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], 3, heads, size).permute(2, 0, 3, 1, 4)

    def attend(x: torch.Tensor) -> torch.Tensor:
        query, key, value = split(x).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], features)

    return nn.Sequential(
        nn.Linear(features, 3 * features),
        Apply(f"attention of {heads} heads", attend),
        nn.Linear(features, features),
    )


def encoder(random: Random, features: int) -> nn.Module:
    return nn.TransformerEncoderLayer(
        features,
        _heads(random, features),
        random.randint(4, 90),
        activation=random.choice(("relu", "gelu")),
        batch_first=True,
        norm_first=random.random() < 0.5,
    )


def recurrence(random: Random, features: int) -> nn.Module:
    kind = random.choice((nn.LSTM, nn.LSTM, nn.GRU, nn.RNN))
    network = kind(
        features,
        random.randint(1, 40),
        num_layers=random.choice((1, 1, 2)),
        batch_first=True,
        bidirectional=random.random() < 0.4,
        bias=random.random() < 0.9,
    )
    return Recurrence(network, random.choice(("all", "all", "both", "state")))


def convolution(random: Random, features: int) -> nn.Module:
    groups = random.choice((1, 1, features))
    kernel = random.choice((1, 2, 3, 5))
    out = groups * random.randint(1, max(1, 40 // groups))
    return Turned(
        nn.Conv1d(
            features, out, kernel, random.choice((1, 1, 2)), random.choice((0, kernel // 2)), groups=groups
        )
    )


def pooling(random: Random, features: int) -> nn.Module:
    ceil = random.random() < 0.4
    return Turned(
        random.choice(
            (
                nn.MaxPool1d(random.choice((2, 3)), 2, ceil_mode=ceil),
                nn.AvgPool1d(3, 2, 1, ceil, random.random() < 0.5),
                nn.AdaptiveAvgPool1d(4),
                nn.AdaptiveMaxPool1d(3),
            )
        )
    )


# Slices along dynamic axes are left out: the exporter drops them (docs/reference/operators.md).
_ARRANGING = (
    Apply("x[..., ::2]", lambda x: x[..., ::2]),
    Apply("softmax", lambda x: x.softmax(-1)),
    Apply("softmax of steps", lambda x: x.softmax(1)),
    Apply("log softmax", lambda x: x.log_softmax(-1)),
    Apply("cumsum", lambda x: x.cumsum(1) / 10),
    Apply("x xᵀ x", lambda x: (x @ x.transpose(1, 2) * 0.05).softmax(-1) @ x),
    Apply("with mean", lambda x: torch.cat((x, x.mean(1, keepdim=True)), 1)),
    Apply("std", lambda x: x / (x.std(-1, keepdim=True) + 1)),
    Apply("flip", lambda x: x.flip(1)),
    Apply("swiglu", lambda x: nn.functional.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1]),
    Apply("einsum", lambda x: torch.einsum("bif,bjf->bij", x, x).tanh() @ x),
    Apply("rms", lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)),
)
_ENDING = (
    Apply("mean", lambda x: x.mean(1)),
    Apply("max", lambda x: x.max(1)[0]),
    Apply("last", lambda x: x[:, -1]),
    Apply("first", lambda x: x[:, 0]),
    Apply("sum", lambda x: x.sum(1)),
)


def arranging(random: Random, features: int) -> nn.Module:
    return random.choice(_ARRANGING)


def ending(random: Random, features: int) -> nn.Module:
    return random.choice(_ENDING)


def joined(random: Random, features: int) -> nn.Module:
    wide = random.randint(2, 80)
    body = nn.Sequential(
        nn.LayerNorm(features), nn.Linear(features, wide), activation(random), nn.Linear(wide, features)
    )
    return Join(Apply("x + y", lambda x, y: x + y), body)


def _activation(random: Random, features: int) -> nn.Module:
    made = activation(random)
    return Turned(nn.PReLU(features)) if isinstance(made, nn.PReLU) and random.random() < 0.5 else made


ALL: tuple[tuple[Make, int], ...] = (
    (linear, 4),
    (norm, 2),
    (attention, 2),
    (encoder, 1),
    (recurrence, 2),
    (convolution, 2),
    (pooling, 1),
    (arranging, 3),
    (joined, 2),
    (_activation, 4),
    (ending, 1),
)
LOCAL: tuple[tuple[Make, int], ...] = ((linear, 2), (_activation, 5), (pooling, 2), (ending, 1))
VECTORS: tuple[tuple[Make, int], ...] = ((linear, 3), (lambda random, _: activation(random), 4))
