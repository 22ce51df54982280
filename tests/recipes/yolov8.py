"""YOLOv8 (Ultralytics, 2023): C2f blocks, and a head without anchors that learns distances as distributions."""

# mypy: disallow-subclassing-any=False

import math

import torch
from torch import nn

from tests.golden.networks.yolov5 import SPPF, Bottleneck, unit

STRIDES = (8, 16, 32)
BINS = 16


class Pair(Bottleneck):
    """Two 3x3 units, with or without a shortcut."""

    def __init__(self, channels: int, shortcut: bool) -> None:
        super().__init__(channels, shortcut)
        self.cv1 = unit(channels, channels, 3)


class C2f(nn.Module):
    """Cross-stage partial block that hands the result of each of its pairs on."""

    def __init__(self, channels_in: int, channels_out: int, repeats: int, shortcut: bool = False) -> None:
        super().__init__()
        half = channels_out // 2
        self.cv1 = unit(channels_in, 2 * half)
        self.cv2 = unit((2 + repeats) * half, channels_out)
        self.m = nn.ModuleList(Pair(half, shortcut) for _ in range(repeats))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.cv1(x).chunk(2, 1))
        for pair in self.m:
            parts.append(pair(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class Distances(nn.Module):
    """The expected distance to each side of the box: (n, 4 * BINS, cells) to (n, 4, cells), as a fixed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(BINS, 1, 1, bias=False)
        self.set_weights()

    def set_weights(self) -> None:
        """Make the convolution weigh each bin by its number."""
        self.conv.weight.data = torch.arange(BINS, dtype=torch.float32).view(1, BINS, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, cells = x.shape
        return self.conv(x.view(batch, 4, BINS, cells).transpose(2, 1).softmax(1)).view(batch, 4, cells)


class Detect(nn.Module):
    """Three maps to (n, 4 + classes, cells): centre and size in pixels of the input, and a probability for each class.

    Args:
        classes: number of classes.
        channels: of each map.
    """

    def __init__(self, classes: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes = 4 * BINS, classes
        box = max(16, channels[0] // 4, 4 * BINS)
        score = max(channels[0], min(classes, 100))
        self.cv2 = nn.ModuleList(_branch(count, box, 4 * BINS) for count in channels)
        self.cv3 = nn.ModuleList(_branch(count, score, classes) for count in channels)
        self.distances = Distances()

    def forward(self, maps: list[torch.Tensor]) -> torch.Tensor:
        joined = [
            torch.cat((box(x), score(x)), 1) for x, box, score in zip(maps, self.cv2, self.cv3, strict=True)
        ]
        sides, scores = torch.cat([x.flatten(2) for x in joined], 2).split(self.sizes, 1)
        centres, strides = _cells(joined)
        low, high = self.distances(sides).chunk(2, 1)
        first, last = centres - low, centres + high
        boxes = torch.cat(((first + last) / 2, last - first), 1) * strides
        return torch.cat((boxes, scores.sigmoid()), 1)


def _branch(channels: int, hidden: int, out: int) -> nn.Module:
    return nn.Sequential(unit(channels, hidden, 3), unit(hidden, hidden, 3), nn.Conv2d(hidden, out, 1))


def _cells(maps: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the centres of all cells (1, 2, cells), in cells, and the stride of each (1, cells)."""
    centres, strides = [], []
    for x, stride in zip(maps, STRIDES, strict=True):
        rows, columns = x.shape[2:]
        y, x_axis = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
        centres.append(torch.stack((x_axis.flatten(), y.flatten())))
        strides.append(torch.full((1, rows * columns), float(stride)))
    return torch.cat(centres, 1).unsqueeze(0), torch.cat(strides, 1)


class YoloV8(nn.Module):
    """Images (n, 3, h, w), h and w multiples of 32, to (n, 4 + classes, cells).

    Args:
        width: channel multiple: 0.25 for n.
        depth: repeat multiple: 0.33 for n.
        classes: number of classes.
    """

    def __init__(self, width: float = 0.25, depth: float = 0.33, classes: int = 80) -> None:
        super().__init__()
        c1, c2, c3, c4, c5 = (math.ceil(count * width / 8) * 8 for count in (64, 128, 256, 512, 1024))
        r3, r6 = (max(1, round(count * depth)) for count in (3, 6))
        self.stem = nn.Sequential(unit(3, c1, 3, 2), unit(c1, c2, 3, 2), C2f(c2, c2, r3, True))
        self.stage3 = nn.Sequential(unit(c2, c3, 3, 2), C2f(c3, c3, r6, True))
        self.stage4 = nn.Sequential(unit(c3, c4, 3, 2), C2f(c4, c4, r6, True))
        self.stage5 = nn.Sequential(unit(c4, c5, 3, 2), C2f(c5, c5, r3, True), SPPF(c5))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top4 = C2f(c5 + c4, c4, r3)
        self.top3 = C2f(c4 + c3, c3, r3)
        self.down3 = unit(c3, c3, 3, 2)
        self.bottom4 = C2f(c3 + c4, c4, r3)
        self.down4 = unit(c4, c4, 3, 2)
        self.bottom5 = C2f(c4 + c5, c5, r3)
        self.detect = Detect(classes, (c3, c4, c5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p3 = self.stage3(self.stem(x))
        p4 = self.stage4(p3)
        p5 = self.stage5(p4)
        middle = self.top4(torch.cat((self.up(p5), p4), 1))
        small = self.top3(torch.cat((self.up(middle), p3), 1))
        middle = self.bottom4(torch.cat((self.down3(small), middle), 1))
        large = self.bottom5(torch.cat((self.down4(middle), p5), 1))
        return self.detect([small, middle, large])
