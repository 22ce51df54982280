"""Networks by name, with weights made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from .common import draw_weights
from .resnet import ResNet18


class Network(NamedTuple):
    """How to construct a network, and the input shape its batch norms are calibrated on."""

    construct: Callable[..., nn.Module]
    shape: tuple[int, ...]


NETWORKS: dict[str, Network] = {
    "resnet18": Network(ResNet18, (4, 3, 64, 64)),
}


def build(name: str, *, seed: int = 0, **options: Any) -> nn.Module:
    """Construct the network `name` with weights drawn from `seed`, in evaluation mode.

    Args:
        name: A key of `NETWORKS`.
        seed: Seed of the weights; torch's global generator is left as it was.
        options: Arguments of the network's class (width, classes, …).

    Raises:
        KeyError: `name` is not in `NETWORKS`.
    """
    if name not in NETWORKS:
        raise KeyError(f"no network {name!r}; there are {', '.join(sorted(NETWORKS))}")
    network = NETWORKS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = network.construct(**options)
        draw_weights(module, network.shape)
    return module
