"""Layers of random modules that work element by element."""

from random import Random

import torch
from torch import nn

from tests.differential.modules.layers import Apply

# Left out: functions with jumps (sign, round, floor), where one rounding more makes another result; and `div` with
# a rounding mode, `round` to decimals and `half().float()`, which the exporter gets wrong: see
# docs/reference/operators.md.
_LAYERS = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Hardswish,
    nn.Hardsigmoid,
    nn.Hardtanh,
    nn.Sigmoid,
    nn.Tanh,
    nn.Softplus,
    nn.Softsign,
    nn.LogSigmoid,
    nn.Tanhshrink,
    nn.Softshrink,
    nn.Hardshrink,
    nn.PReLU,
)
_FUNCTIONS = (
    Apply("gelu tanh", lambda x: nn.functional.gelu(x, approximate="tanh")),
    Apply("abs", torch.abs),
    Apply("square", torch.square),
    Apply("1.5 x - 0.25", lambda x: 1.5 * x - 0.25),
    Apply("clamp(-1, 2)", lambda x: x.clamp(-1.0, 2.0)),
    Apply("clamp min 0.1", lambda x: x.clamp(min=0.1)),
    Apply("exp(-abs)", lambda x: torch.exp(-x.abs())),
    Apply("sqrt(abs + 0.5)", lambda x: torch.sqrt(x.abs() + 0.5)),
    Apply("rsqrt(x² + 1)", lambda x: torch.rsqrt(x * x + 1)),
    Apply("log(abs + 1)", lambda x: torch.log(x.abs() + 1)),
    Apply("log1p(abs)", lambda x: torch.log1p(x.abs())),
    Apply("pow 3", lambda x: x**3),
    Apply("sin", torch.sin),
    Apply("atan", torch.atan),
    Apply("erf", torch.erf),
    Apply("1 / (x² + 2)", lambda x: 1 / (x * x + 2)),
    Apply("x / (abs + 1)", lambda x: x / (x.abs() + 1)),
    Apply("where x > 0", lambda x: torch.where(x > 0, x, 0.3 * x)),
    Apply("maximum(x, -x / 2)", lambda x: torch.maximum(x, -x / 2)),
    Apply("minimum(x, x²)", lambda x: torch.minimum(x, x * x)),
    Apply("masked fill", lambda x: x.masked_fill(x < -0.7, 0.25)),
    Apply("neg", torch.neg),
    Apply("expm1 of -abs", lambda x: torch.expm1(-x.abs())),
)


def activation(random: Random) -> nn.Module:
    """Return a layer or function of each element."""
    if random.random() < 0.6:
        return random.choice(_LAYERS)()
    return random.choice(_FUNCTIONS)
