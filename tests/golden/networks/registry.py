"""Networks by name, with weights made from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

from .cells import CellNet
from .common import draw_weights
from .efficientnet_lite import EfficientNetLite
from .encoder import Encoder
from .mobilenet_v2 import MobileNetV2
from .mobilenet_v3 import MobileNetV3Small
from .mtcnn import ProposalNet
from .resnet import ResNet18
from .sequence import SequenceNet
from .shufflenet import ShuffleNetV2
from .unet import UNet
from .vit import ViT
from .yolov5 import YoloV5


class Network(NamedTuple):
    """How to construct a network, and the input shape its batch norms are calibrated on."""

    construct: Callable[..., nn.Module]
    shape: tuple[int, ...]


NETWORKS: dict[str, Network] = {
    "resnet18": Network(ResNet18, (4, 3, 64, 64)),
    "mobilenet_v2": Network(MobileNetV2, (4, 3, 96, 96)),
    "mobilenet_v3_small": Network(MobileNetV3Small, (4, 3, 96, 96)),
    "unet": Network(UNet, (4, 3, 64, 64)),
    "yolov5": Network(YoloV5, (4, 3, 96, 96)),
    "proposal_net": Network(ProposalNet, (4, 3, 64, 64)),
    "efficientnet_lite": Network(EfficientNetLite, (4, 3, 96, 96)),
    "shufflenet_v2": Network(ShuffleNetV2, (4, 3, 96, 96)),
    "sequence_net": Network(SequenceNet, (4, 3, 40)),
    "cell_net": Network(CellNet, (4, 3, 6)),
    "encoder": Network(Encoder, (1, 128, 384)),
    "vit": Network(ViT, (1, 3, 224, 224)),
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
