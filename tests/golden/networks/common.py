"""Pieces that several networks share: a conv-norm-activation unit, and seeded weights."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn


class ConvNorm(nn.Sequential):
    """Convolution without bias, batch norm, activation; "same" padding for odd kernels."""

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
        padding: int | None = None,
        eps: float = 1e-5,
        activation: type[nn.Module] | None = nn.ReLU,
    ) -> None:
        padding = kernel // 2 if padding is None else padding
        parts: list[nn.Module] = [
            nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(channels_out, eps=eps),
        ]
        if activation is not None:
            parts.append(activation())
        super().__init__(*parts)


def divisible(channels: float, divisor: int = 8) -> int:
    """Nearest multiple of `divisor`, never below 90 % of `channels` (MobileNet's rule)."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


def draw_weights(module: nn.Module, shape: tuple[int, ...]) -> None:
    """Fill `module` with random weights that keep activations of order one.

    Convolutions and linear layers get He-normal weights, batch norms a random affine part. The running
    statistics are those of one batch of noise of the given input `shape`, then moved a little, so that they
    are neither the trivial 0 and 1 nor far from what the data has. Draws from torch's global generator.
    """
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    for part in module.modules():
        if isinstance(part, nn.PReLU):
            nn.init.uniform_(part.weight, -0.3, 0.6)
        if isinstance(part, nn.Conv1d | nn.Conv2d | nn.ConvTranspose1d | nn.ConvTranspose2d | nn.Linear):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
            if part.bias is not None:
                nn.init.normal_(part.bias, std=0.1)
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.7, 1.3)
        nn.init.normal_(norm.bias, std=0.2)
        norm.momentum = 1.0
    with torch.no_grad():
        if norms:
            module.train()(torch.randn(shape))
        for norm in norms:
            norm.momentum = 0.1
            norm.running_mean.add_(0.1 * torch.randn_like(norm.running_mean) * norm.running_var.sqrt())
            norm.running_var.mul_(torch.empty_like(norm.running_var).uniform_(0.8, 1.25))
    module.eval()
