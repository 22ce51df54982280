"""MobileNetV3-Large (Howard et al., 2019): the blocks of the small one, in another table."""

# mypy: disallow-subclassing-any=False

from torch import nn

from tests.golden.networks.mobilenet_v3 import Block, MobileNetV3

# table 1 of the paper
BLOCKS: tuple[Block, ...] = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)


class MobileNetV3Large(MobileNetV3):
    """Images (n, 3, h, w) to logits (n, classes)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__(BLOCKS, 960, 1280, classes)
