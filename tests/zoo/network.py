"""What the zoo knows of a network: how to build it, and what goes in."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import Array

Shape = tuple[int, ...]
_PATCH = 32


@dataclass(frozen=True)
class Input:
    """One input of a network.

    Attributes:
        spec: its shape and type as `kuiper export --input` takes them, with `?` for dynamic sizes.
        below: of integers, how many there are: the size of the vocabulary.
        is_mask: whether it is an attention mask: 1, and 0 where the text is padded.
    """

    spec: str
    below: int = 0
    is_mask: bool = False

    @property
    def fixed(self) -> str:
        """The shape and type with every size fixed."""
        return re.sub(r"(^|,)\?", r"\g<1>1", self.spec).replace("?", "")

    @property
    def shape(self) -> Shape:
        """The sizes that the network is exported with."""
        return tuple(int(size) for size in self.fixed.partition(":")[0].split(","))

    def draw(self, random: np.random.Generator, shape: Shape) -> Array:
        """Return values: ids of the whole vocabulary, a padded mask, a picture, or normal numbers."""
        if self.is_mask:
            return padded(shape)
        if self.below:
            return random.integers(0, self.below, shape)
        fine = random.standard_normal(shape, np.float32)
        return fine + _patches(random, shape) if len(shape) == 4 else fine


@dataclass(frozen=True)
class Network:
    """A network of another package.

    Attributes:
        package: where it is from.
        build: makes the module, with weights from PyTorch's generator.
        inputs: what goes in.
        shapes: of the inputs, for each check of the export with dynamic sizes.
    """

    package: str
    build: Callable[[], Any]
    inputs: tuple[Input, ...]
    shapes: tuple[tuple[Shape, ...], ...]

    def arrays(self, shapes: Sequence[Shape] | None = None) -> list[Array]:
        """Return inputs of these shapes, the same each time; by default of the shapes of the export."""
        random = np.random.default_rng(0)
        chosen = shapes or [item.shape for item in self.inputs]
        return [item.draw(random, shape) for item, shape in zip(self.inputs, chosen, strict=True)]


def padded(shape: Shape) -> Array:
    """Return a mask of 1 and 0: even rows are padded at the end by a quarter, odd ones at the start by a third."""
    mask = np.ones(shape, np.int64)
    length = shape[-1]
    mask[::2, length - length // 4 :] = 0
    mask[1::2, : length // 3] = 0
    return mask


def _patches(random: np.random.Generator, shape: Shape) -> Array:
    """Return pictures of large squares: of noise alone, all places are alike once a network has pooled them."""
    rows, columns = (-(-size // _PATCH) for size in shape[2:])
    colours = 2 * random.standard_normal((*shape[:2], rows, columns), np.float32)
    return colours.repeat(_PATCH, 2).repeat(_PATCH, 3)[:, :, : shape[2], : shape[3]]


def pictures(package: str, build: Callable[[], Any], side: int, sides: bool = False) -> Network:
    """Return a network of square pictures, any number of them; `sides`: of any height and width as well."""
    size = f"{side}?" if sides else f"{side}"
    others = [(side, side), (side - 64, side + 32), (side + 128, side - 96)] if sides else [(side, side)] * 3
    shapes = tuple(((count, 3, *other),) for count, other in zip((1, 2, 5), others, strict=True))
    return Network(package, build, (Input(f"?,3,{size},{size}"),), shapes)
