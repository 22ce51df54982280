"""All networks of the zoo; each is an attribute as well, so that `kuiper export tests.zoo.networks:bert` finds it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from tests.zoo import transformers_networks, vision_networks
from tests.zoo.building import enliven, seed
from tests.zoo.network import Network

NETWORKS: Mapping[str, Network] = {**transformers_networks.NETWORKS, **vision_networks.NETWORKS}
"""Every network by name."""


def build(name: str) -> Any:
    """Return a network as a `torch.nn.Module`, the same each time."""
    network = NETWORKS[name]
    seed()
    module = network.build().eval().float()
    shapes = [(4, *item.shape[1:]) for item in network.inputs]
    return enliven(module, tuple(torch.from_numpy(array) for array in network.arrays(shapes)))


def __getattr__(name: str) -> Any:
    if name in NETWORKS:
        return partial(build, name)
    raise AttributeError(f"the zoo has no {name!r}")
