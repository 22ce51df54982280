"""YOLOv5 (releases 6 and 7) with its decoding head, at any width and depth."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from .common import ConvNorm

Anchors = tuple[tuple[int, ...], ...]
ANCHORS: Anchors = (
    (10, 13, 16, 30, 33, 23),
    (30, 61, 62, 45, 59, 119),
    (116, 90, 156, 198, 373, 326),
)
STRIDES = (8, 16, 32)
EPS = 1e-3


def unit(
    channels_in: int, channels_out: int, kernel: int = 1, stride: int = 1, padding: int | None = None
) -> ConvNorm:
    """Convolution, batch norm and SiLU."""
    return ConvNorm(channels_in, channels_out, kernel, stride, padding=padding, eps=EPS, activation=nn.SiLU)


class Bottleneck(nn.Module):
    """A 1x1 and a 3x3 unit, with or without a shortcut."""

    def __init__(self, channels: int, shortcut: bool) -> None:
        super().__init__()
        self.cv1 = unit(channels, channels)
        self.cv2 = unit(channels, channels, 3)
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.cv2(self.cv1(x))
        return x + inner if self.shortcut else inner


class C3(nn.Module):
    """Cross-stage partial block: bottlenecks on one half of the channels, joined with the other half."""

    def __init__(self, channels_in: int, channels_out: int, repeats: int, shortcut: bool = True) -> None:
        super().__init__()
        half = channels_out // 2
        self.cv1 = unit(channels_in, half)
        self.cv2 = unit(channels_in, half)
        self.cv3 = unit(2 * half, channels_out)
        self.m = nn.Sequential(*(Bottleneck(half, shortcut) for _ in range(repeats)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class SPPF(nn.Module):
    """Spatial pyramid pooling by three max pools in a row."""

    def __init__(self, channels: int, kernel: int = 5) -> None:
        super().__init__()
        self.cv1 = unit(channels, channels // 2)
        self.cv2 = unit(channels // 2 * 4, channels)
        self.m = nn.MaxPool2d(kernel, stride=1, padding=kernel // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.cv1(x)
        once = self.m(x)
        twice = self.m(once)
        return self.cv2(torch.cat((x, once, twice, self.m(twice)), 1))


class Detect(nn.Module):
    """Turn three feature maps into boxes (n, boxes, 5 + classes): centre, size, objectness, class scores.

    Per stage, with y = sigmoid(conv(x)): centre = (2 y + grid) stride and size = (2 y)^2 anchor grid. Grids
    and anchor grids are made for one image size by `prepare`. With `raw`, and in training, the three maps
    come out undecoded as (n, anchors, h, w, 5 + classes).
    """

    def __init__(
        self, classes: int, channels: tuple[int, ...], raw: bool = False, anchors: Anchors = ANCHORS
    ) -> None:
        super().__init__()
        self.no = classes + 5
        self.anchors = anchors
        self.na = len(anchors[0]) // 2
        self.raw = raw
        self.stride = torch.tensor([float(stride) for stride in STRIDES])
        self.grid: list[torch.Tensor] = []
        self.anchor_grid: list[torch.Tensor] = []
        self.m = nn.ModuleList(nn.Conv2d(count, self.no * self.na, 1) for count in channels)

    def prepare(self, height: int, width: int) -> None:
        """Make the grids for images of `height` x `width` pixels."""
        self.grid, self.anchor_grid = [], []
        for stride, anchors in zip(STRIDES, self.anchors, strict=True):
            rows, columns = height // stride, width // stride
            y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            shape = (1, self.na, rows, columns, 2)
            self.grid.append((torch.stack((x, y), 2).expand(shape) - 0.5).float())
            sizes = torch.tensor(anchors, dtype=torch.float32).view(1, self.na, 1, 1, 2)
            self.anchor_grid.append(sizes.expand(shape).clone())

    def forward(self, x: list[torch.Tensor]) -> torch.Tensor | list[torch.Tensor]:
        decoded = not (self.raw or self.training)
        heads: list[torch.Tensor] = []
        for index, conv in enumerate(self.m):
            head = conv(x[index])
            n, _, rows, columns = head.shape
            head = head.view(n, self.na, self.no, rows, columns).permute(0, 1, 3, 4, 2).contiguous()
            if decoded:
                centre, size, rest = head.sigmoid().split((2, 2, self.no - 4), 4)
                centre = (centre * 2 + self.grid[index]) * self.stride[index]
                size = (size * 2) ** 2 * self.anchor_grid[index]
                head = torch.cat((centre, size, rest), 4).view(n, self.na * rows * columns, self.no)
            heads.append(head)
        return torch.cat(heads, 1) if decoded else heads


# A traced module is recorded under its class path, and `moduleop=models.yolo.Detect` asks for this one.
Detect.__module__ = "models.yolo"


class YoloV5(nn.Module):
    """Images (n, 3, h, w), h and w multiples of 32, to boxes (n, boxes, 5 + classes).

    Args:
        width: Channel multiple: 0.25 for n, 0.5 for s.
        depth: Repeat multiple: 0.33 for n and s.
        classes: Number of classes.
        size: (height, width) of the images that the decoding grids are made for.
        raw: Give the three heads undecoded instead.
        divisor: Channel counts are rounded up to multiples of it.
        anchors: For each stage, width and height of each anchor in pixels.
    """

    def __init__(
        self,
        width: float = 0.25,
        depth: float = 0.33,
        classes: int = 80,
        size: tuple[int, int] = (640, 640),
        raw: bool = False,
        divisor: int = 8,
        anchors: Anchors = ANCHORS,
    ) -> None:
        super().__init__()
        c1, c2, c3, c4, c5 = (
            -int(-count * width // divisor) * divisor for count in (64, 128, 256, 512, 1024)
        )
        r3, r6, r9 = (max(1, round(count * depth)) for count in (3, 6, 9))
        self.stem = nn.Sequential(unit(3, c1, 6, 2, padding=2), unit(c1, c2, 3, 2), C3(c2, c2, r3))
        self.stage3 = nn.Sequential(unit(c2, c3, 3, 2), C3(c3, c3, r6))
        self.stage4 = nn.Sequential(unit(c3, c4, 3, 2), C3(c4, c4, r9))
        self.stage5 = nn.Sequential(unit(c4, c5, 3, 2), C3(c5, c5, r3), SPPF(c5))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.lateral5 = unit(c5, c4)
        self.top4 = C3(2 * c4, c4, r3, shortcut=False)
        self.lateral4 = unit(c4, c3)
        self.top3 = C3(2 * c3, c3, r3, shortcut=False)
        self.down3 = unit(c3, c3, 3, 2)
        self.bottom4 = C3(2 * c3, c4, r3, shortcut=False)
        self.down4 = unit(c4, c4, 3, 2)
        self.bottom5 = C3(2 * c4, c5, r3, shortcut=False)
        self.detect = Detect(classes, (c3, c4, c5), raw, anchors)
        self.detect.prepare(*size)

    def forward(self, x: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        p3 = self.stage3(self.stem(x))
        p4 = self.stage4(p3)
        lateral5 = self.lateral5(self.stage5(p4))
        lateral4 = self.lateral4(self.top4(torch.cat((self.up(lateral5), p4), 1)))
        small = self.top3(torch.cat((self.up(lateral4), p3), 1))
        middle = self.bottom4(torch.cat((self.down3(small), lateral4), 1))
        large = self.bottom5(torch.cat((self.down4(middle), lateral5), 1))
        return self.detect([small, middle, large])
