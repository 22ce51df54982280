"""Networks that people bring, with weights from a seed: functions without arguments, as `kuiper export` takes them."""

from typing import Any

from tests.golden.networks import build


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
