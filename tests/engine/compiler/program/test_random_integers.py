"""Random graphs of tensors that have scales of their own, against the reference layers: the same bits."""

import random
from pathlib import Path

import pytest

from engine import TensorScale
from tests.engine.compiler.program.test_int8 import Writer, check_same, numbers

_KINDS = (
    *("convolution", "convolution", "relu", "pool", "upsample"),
    *("concatenation", "concatenation", "chunk", "split", "slice", "add"),
)
_POOL: dict[str, object] = dict.fromkeys(("kernel_size",), "(3,3)")
_POOL |= dict.fromkeys(("stride", "padding", "dilation"), "(1,1)")
_POOL |= dict.fromkeys(("ceil_mode", "return_indices"), False)
_MAX_CHANNELS, _MAX_ROWS = 100, 30

Shape = tuple[int, int, int, int]


class _Drawing:
    """Draws operators one after the other, each of tensors that there are already."""

    def __init__(self, seed: int) -> None:
        self.writer = Writer()
        self.shapes: dict[str, Shape] = {"x": (1 + seed % 2, 4, 6, 7)}
        self._random = random.Random(seed)
        self._filters = ((8, 16, 20), (3, 5, 8, 12))[seed // 2 % 2]
        self._read: set[str] = set()
        self.writer.input("x", self.shapes["x"])
        for kind in ("convolution", *self._random.choices(_KINDS, k=9)):
            self._draw(kind)
        self._end()

    def _draw(self, kind: str) -> None:
        """Add an operator; none where what was drawn does not suit it."""
        x = self._pick(list(self.shapes))
        images, channels, rows, columns = shape = self.shapes[x]
        match kind:
            case "convolution":
                filters, size = self._random.choice(self._filters), self._random.choice((1, 3))
                y = f"t{len(self.shapes)}"
                self.writer.convolution(x, y, (filters, channels, size, size), 1, size // 2)
                self.shapes[y] = (images, filters, rows, columns)
            case "relu":
                self._add("nn.ReLU", x, [shape])
            case "pool":
                self._add("nn.MaxPool2d", x, [shape], **_POOL)
            case "concatenation":
                self._concatenate(x)
            case "add":
                other = self._pick([name for name in self.shapes if self.shapes[name] == shape])
                if other != x:
                    self._add("pnnx.Expression", f"{x} {other}", [shape], expr="add(@0,@1)")
            case _:
                self._draw_part(kind, x)

    def _draw_part(self, kind: str, x: str) -> None:
        """Add what shows parts of a tensor, or its pixels several times."""
        images, channels, rows, columns = self.shapes[x]
        match kind:
            case "upsample" if rows < _MAX_ROWS:
                grown = (images, channels, 2 * rows, 2 * columns)
                self._add("nn.Upsample", x, [grown], scale_factor="(2.0,2.0)", mode="nearest", size="None")
            case "chunk" if channels % 2 == 0:
                self._add("torch.chunk", x, [(images, channels // 2, rows, columns)] * 2, chunks=2, dim=1)
            case "split" if 4 < channels <= 8:
                parts = [(images, part, rows, columns) for part in (4, channels - 4)]
                self._add("torch.split", x, parts, split_size_or_sections=4, dim=1)
            case "slice" if channels > 4:
                part = (images, channels - 4, rows, columns)
                self._add("Tensor.slice", x, [part], dim=1, start=4, end=channels, step=1)

    def _concatenate(self, x: str) -> None:
        """Add a concatenation, perhaps of one tensor twice, and perhaps another one of the same in another order."""
        images, _, *pixels = self.shapes[x]
        like = [name for name, (_, _, *others) in self.shapes.items() if others == pixels]
        parts = [x, *(self._pick(like) for _ in range(self._random.randint(1, 2)))]
        channels = sum(self.shapes[part][1] for part in parts)
        if channels > _MAX_CHANNELS:
            return
        for _ in range(self._random.randint(1, 2)):
            self._random.shuffle(parts)
            self._add("torch.cat", " ".join(parts), [(images, channels, pixels[0], pixels[1])], dim=1)

    def _add(self, kind: str, inputs: str, shapes: list[Shape], **parameters: object) -> None:
        names = [f"t{len(self.shapes) + place}" for place in range(len(shapes))]
        self.writer.add(kind, inputs, " ".join(names), **parameters)
        self.shapes.update(zip(names, shapes, strict=True))
        self._read.update(inputs.split())

    def _pick(self, names: list[str]) -> str:
        return self._random.choice(names[-5:])

    def _end(self) -> None:
        """Have most of what nobody reads leave the graph, and some of the rest; give all but a few tensors scales."""
        made = [name for name in self.shapes if name != "x"]
        leaving = [
            name for name in made if self._random.random() < (0.1 if name in self._read else 0.85)
        ] or made[-1:]
        operators = [line.split() for line in self.writer.lines]
        needed = {words[4] for words in operators if words[1] in self.writer.layers}
        self.writer.lines += [f"pnnx.Output out{name} 1 0 {name}" for name in leaving]
        scales = [self._scale() for _ in range(self._random.choice((2, 4, 8)))]
        for name in self.shapes:
            if name in needed or self._random.random() < 0.9:
                self.writer.tensors[name] = self._random.choice(scales)

    def _scale(self) -> TensorScale:
        step, zero_point = self._random.randint(1, 20) / 64, self._random.choice((0, 77, 128, 255))
        as_pytorch = self._random.random() < 0.3
        return TensorScale(step, zero_point, as_pytorch, self._random.choice((0, -128)) if as_pytorch else 0)


@pytest.mark.parametrize("seed", range(16))
def test_random_graphs(tmp_path: Path, seed: int) -> None:
    drawing = _Drawing(seed)
    check_same(drawing.writer, tmp_path, numbers(*drawing.shapes["x"]))
