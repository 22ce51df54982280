"""The networks, and the shapes that they are run on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np
import torch

from engine.dtypes import Array
from tests.differential.networks.images import DenseNet, EfficientNetLite, ShuffleNet
from tests.differential.networks.sequences import Recurrent, SentenceEncoder
from tests.golden.networks.common import draw_weights
from tests.golden.networks.registry import build

Size = tuple[int, int, int]
"""Batch, rows and columns of images; batch, steps and features of sequences."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network and what it takes.

    Attributes:
        name: what it is called.
        construct: makes the module.
        step: rows and columns are multiples of it.
        most: elements of batch, rows and columns together.
        sizes: sizes that are always run.
        share: how far results may be off, as a share of the largest output.
        kind: "image", "ids" or "steps".
        features: features of a step.
        fixed: rows and columns where only the batch may differ.
    """

    name: str
    construct: Callable[[], Any]
    step: int = 1
    most: int = 250_000
    sizes: tuple[Size, ...] = ()
    share: float = 5e-5
    kind: str = "image"
    features: int = 40
    fixed: tuple[int, int] | None = None

    def arrays(self, size: Size) -> list[Array]:
        """Return the inputs of a run."""
        random = np.random.default_rng(size)
        if self.kind == "ids":
            ids = random.integers(0, 2000, size[:2])
            lengths = random.integers(1, size[1] + 1, size[0])
            return [ids, (np.arange(size[1]) < lengths[:, None]).astype(np.int64)]
        shape = (size[0], size[1], self.features) if self.kind == "steps" else (size[0], 3, *size[1:])
        return [random.standard_normal(shape).astype(np.float32)]

    def draw_sizes(self, seed: int, count: int) -> Iterator[Size]:
        """Yield the sizes that are always run, then others: batches 1 to 16, any aspect ratio."""
        yield from self.sizes[:count]
        random = Random(f"{seed}/{self.name}")
        for _ in range(count - len(self.sizes)):
            batch = random.choice((1, 1, 1, 2, 3, 4, 5, 8, 16))
            if self.kind != "image":
                yield (batch, random.randint(2, 128 if self.kind == "ids" else 60), 0)
                continue
            if self.fixed is not None:
                yield (batch, *self.fixed)
                continue
            least = max(self.step, 32)
            rows = random.randint(least, 640) // self.step * self.step
            most = max(least, self.most // batch // rows)
            columns = max(
                least, random.randint(least, max(least, min(most, 2 * rows))) // self.step * self.step
            )
            yield (
                batch,
                min(rows, max(least, self.most // batch // columns // self.step * self.step)),
                columns,
            )


def _drawn(construct: Callable[[], Any], shape: tuple[int, ...]) -> Any:
    """Construct a network with weights of its own seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = construct()
        draw_weights(module, shape)
    return module.eval()


def _plain(construct: Callable[[], Any]) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return construct().eval()


_RESNET: tuple[Size, ...] = (
    (2, 224, 224),
    (1, 448, 448),
    (3, 224, 224),
    (1, 384, 512),
    (4, 224, 224),
    (8, 224, 224),
)
_YOLO: tuple[Size, ...] = ((1, 416, 416), (1, 384, 640), (2, 320, 320), (1, 512, 512), (1, 640, 640))
_SMALL = (2, 3, 64, 64)


def networks() -> list[Network]:
    """Return all networks, each full and narrow."""
    image = partial(Network, kind="image")
    return [
        image("resnet18", partial(build, "resnet18"), sizes=_RESNET, most=420_000),
        image("resnet18-narrow", partial(build, "resnet18", width=12)),
        image("yolov5s", partial(build, "yolov5", width=0.5, raw=True), 32, 420_000, _YOLO),
        image("yolov5-narrow", partial(build, "yolov5", width=0.1, raw=True), 32),
        image("unet", partial(build, "unet", base=32), 16, 100_000),
        image("unet-narrow", partial(build, "unet", base=6, classes=3, bilinear=True), 16, share=3e-4),
        image("mobilenet_v2", partial(build, "mobilenet_v2")),
        image("mobilenet_v3_small", partial(build, "mobilenet_v3_small")),
        image("efficientnet", partial(_drawn, EfficientNetLite, _SMALL)),
        image("efficientnet-narrow", partial(_drawn, partial(EfficientNetLite, 0.25), _SMALL)),
        image("shufflenet", partial(_drawn, ShuffleNet, _SMALL)),
        image("shufflenet-narrow", partial(_drawn, partial(ShuffleNet, (20, 44, 90)), _SMALL)),
        image("densenet", partial(_drawn, DenseNet, _SMALL), most=150_000),
        image("densenet-narrow", partial(_drawn, partial(DenseNet, 5), _SMALL)),
        image("vit", partial(build, "vit"), fixed=(224, 224)),
        Network("sentence", partial(_plain, SentenceEncoder), kind="ids"),
        Network("sentence-narrow", partial(_plain, partial(SentenceEncoder, 36, 3, 2)), kind="ids"),
        Network("lstm", partial(_plain, Recurrent), kind="steps"),
        Network("gru", partial(_plain, partial(Recurrent, "GRU", 40, 33)), kind="steps"),
    ]
