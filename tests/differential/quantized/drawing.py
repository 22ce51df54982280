"""Draws networks of quantized layers, as the exporter writes what `torch.ao` quantized.

The exporter is built without an engine for quantized modules, so that graphs are written here, beside what PyTorch is
to compute in real numbers; weights and results are rounded to integers with the same scales.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import torch
from torch.nn import functional

from engine.dtypes import Array

Scale = tuple[float, int]
"""Scale and zero point."""
_CHANNELS = (4, 5, 8, 12, 16, 24, 32, 33, 48)
_LEAST_EXTENT = 4
"""Rows and columns below which pictures are not made smaller."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of quantized tensors.

    Attributes:
        inputs: the operands that it reads.
        output: the operand that it makes.
        scale: what the integers of the output stand for.
        compute: what PyTorch computes of real numbers, in double precision.
        multiplies: whether it is a convolution or linear layer.
    """

    inputs: tuple[str, ...]
    output: str
    scale: Scale
    compute: Callable[..., torch.Tensor]
    multiplies: bool = False


@dataclass(slots=True)
class DrawnNetwork:
    """A network of quantized layers.

    Attributes:
        lines: the lines of its `.param`, inputs and outputs among them.
        state: the arrays of its `.bin`, by operator and key.
        layers: what PyTorch computes, in order.
        values: real numbers of each operand on the picture that scales were chosen for.
    """

    lines: list[str] = field(default_factory=list)
    state: dict[str, Array] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    values: dict[str, torch.Tensor] = field(default_factory=dict)


def quantized(real: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Return real numbers as the nearest ones that integers of 0 to 255 stand for."""
    whole = torch.round(real / scale[0] + scale[1]).clamp(0, 255)
    return (whole - scale[1]) * scale[0]


def draw_network(seed: int, index: int) -> DrawnNetwork:
    """Return the network of a seed and an index; it takes pictures (n, 3, rows, columns) of any size from 24 on."""
    random = Random(f"quantized {seed}/{index}")
    torch.manual_seed(random.randrange(1 << 30))
    return _Drawing(random).draw(random.randint(3, 9))


class _Drawing:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._made = DrawnNetwork()
        self._count = 0

    def draw(self, layers: int) -> DrawnNetwork:
        made, scale = self._made, (_as_float32(0.03), 61)
        made.lines += [
            "pnnx.Input in 0 1 x #x=(?,3,?,?)f32",
            f"nn.quantized.Quantize quantize 1 1 x q {_told(scale)} dtype=torch.qint8 #q=(?,3,?,?)u8",
        ]
        made.values["x"] = torch.randn(2, 3, 40, 36, dtype=torch.float64)
        self._add(("x",), "q", lambda x: x, scale)
        latest = "q"
        ways = (self._convolution, self._convolution, self._depthwise, self._pool, self._sum, self._join)
        for _ in range(layers):
            latest = self._random.choice((*ways, self._resized))(latest)
        latest = self._head(latest)
        made.lines += [f"nn.quantized.DeQuantize back 1 1 {latest} y", "pnnx.Output out 1 0 y"]
        return made

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _add(
        self,
        inputs: tuple[str, ...],
        output: str,
        compute: Callable[..., torch.Tensor],
        scale: Scale | None,
        multiplies: bool = False,
    ) -> Scale:
        """Add a layer; returns the scale of its output, chosen where none is given."""
        real = compute(*(self._made.values[name] for name in inputs))
        scale = self._fitting(real) if scale is None else scale
        self._made.values[output] = quantized(real, scale)
        self._made.layers.append(Layer(inputs, output, scale, compute, multiplies))
        return scale

    def _fitting(self, real: torch.Tensor) -> Scale:
        """Return a scale that fits numbers, more or less: some saturate."""
        low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.0)
        step = _as_float32(max((high - low) / 255, 1e-6) * self._random.uniform(0.7, 1.3))
        return step, min(255, max(0, round(-low / step)))

    def _scale_of(self, operand: str) -> Scale:
        return next(layer.scale for layer in self._made.layers if layer.output == operand)

    def _weight(self, operator: str, shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Draw a weight and a bias; returns what PyTorch's integers stand for, in double precision."""
        weight = torch.randn(*shape) / (weight_size(shape) ** 0.5)
        largest = (
            weight.abs().flatten(1).amax(1) if self._random.random() < 0.7 else weight.abs().max().reshape(1)
        )
        scales = largest.double() / self._random.choice((127, 130))  # by the latter, the largest saturate
        steps = scales.float().double().reshape(-1, *(1,) * (weight.dim() - 1))
        whole = torch.round(weight / steps).clamp(-128, 127)
        state = self._made.state
        state[f"{operator}.weight"] = whole.to(torch.int8).numpy()
        state[f"{operator}.weight.q_per_channel_scales"] = scales.numpy()
        state[f"{operator}.weight.q_per_channel_zero_points"] = torch.zeros(
            len(scales), dtype=torch.int64
        ).numpy()
        bias = torch.randn(len(weight)) * 0.2 if self._random.random() < 0.8 else None
        if bias is not None:
            state[f"{operator}.bias"] = bias.numpy()
        return whole * steps, None if bias is None else bias.double()

    def _convolve(self, source: str, filters: int, kernel: int, stride: int, groups: int) -> str:
        output = self._name()
        padding = kernel // 2
        channels = self._made.values[source].shape[1]
        weight, bias = self._weight(f"op_{output}", (filters, channels // groups, kernel, kernel))
        relu = self._random.random() < 0.5

        def compute(x: torch.Tensor) -> torch.Tensor:
            real = functional.conv2d(x, weight, bias, stride, padding, 1, groups)
            return real.clamp(min=0) if relu else real

        scale = self._add((source,), output, compute, None, multiplies=True)
        kind = "nn.intrinsic.quantized.ConvReLU2d" if relu else "nn.quantized.Conv2d"
        steps = f"stride=({stride},{stride}) padding=({padding},{padding}) groups={groups}"
        self._line(kind, (source,), output, f"{_told(scale)} {steps}")
        return output

    def _convolution(self, source: str) -> str:
        channels, filters = self._made.values[source].shape[1], self._random.choice(_CHANNELS)
        groups = 4 if channels % 16 == 0 and filters % 16 == 0 and self._random.random() < 0.4 else 1
        stride = self._random.choice((1, 1, 2)) if self._is_large(source) else 1
        return self._convolve(source, filters, self._random.choice((1, 3, 3, 5)), stride, groups)

    def _depthwise(self, source: str) -> str:
        channels = self._made.values[source].shape[1]
        stride = self._random.choice((1, 2)) if self._is_large(source) else 1
        return self._convolve(source, channels, self._random.choice((3, 5)), stride, channels)

    def _is_large(self, source: str) -> bool:
        return bool(min(self._made.values[source].shape[2:]) > 2 * _LEAST_EXTENT)

    def _pool(self, source: str) -> str:
        if not self._is_large(source):
            return source
        output, scale = self._name(), self._scale_of(source)
        pool = self._random.choice(("nn.MaxPool2d", "F.avg_pool2d"))
        function = functional.max_pool2d if pool == "nn.MaxPool2d" else functional.avg_pool2d
        self._add((source,), output, lambda x: function(x, 2), scale)
        self._line(pool, (source,), output, "kernel_size=(2,2)")
        return output

    def _resized(self, source: str) -> str:
        if max(self._made.values[source].shape[2:]) > 40:
            return source
        output, scale = self._name(), self._scale_of(source)
        self._add((source,), output, lambda x: functional.interpolate(x, scale_factor=2.0), scale)
        self._line("nn.Upsample", (source,), output, "mode=nearest scale_factor=(2.0,2.0) size=None")
        return output

    def _sum(self, source: str) -> str:
        other = self._convolve(source, self._made.values[source].shape[1], 3, 1, 1)
        output = self._name()
        kind, compute = self._random.choice(
            (
                ("add", torch.add),
                ("add_relu", lambda a, b: (a + b).clamp(min=0)),
                ("mul", torch.mul),
            )
        )
        inputs = self._random.choice(((source, other), (other, source)))
        scale = self._add(inputs, output, compute, None)
        self._line(f"pnnx.custom_op.quantized.{kind}", inputs, output, f"arg_2={scale[0]!r} arg_3={scale[1]}")
        return output

    def _join(self, source: str) -> str:
        other = self._convolve(source, self._random.choice(_CHANNELS), 1, 1, 1)
        output = self._name()
        scale = self._add((source, other), output, lambda a, b: torch.cat((a, b), 1), None)
        self._made.lines.append(f"prim::ListConstruct list_{output} 2 1 {source} {other} items_{output}")
        self._line("nn.quantized.cat", (f"items_{output}",), output, f"dim=1 {_told(scale)}")
        return output

    def _head(self, source: str) -> str:
        """Add a linear layer over channels: of the mean of all pixels, or of each pixel."""
        turned, output = self._name(), self._name()
        scale, channels = self._scale_of(source), self._made.values[source].shape[1]
        if self._random.random() < 0.5:
            mean = self._name()
            self._add((source,), mean, lambda x: functional.adaptive_avg_pool2d(x, 1), scale)
            self._line("F.adaptive_avg_pool2d", (source,), mean, "output_size=(1,1)")
            self._add((mean,), turned, lambda x: x.flatten(1), scale)
            self._line("torch.flatten", (mean,), turned, "start_dim=1 end_dim=-1")
        else:
            self._add((source,), turned, lambda x: x.permute(0, 2, 3, 1), scale)
            self._line("Tensor.permute", (source,), turned, "dims=(0,2,3,1)")
        weight, bias = self._weight(f"op_{output}", (self._random.choice((1, 7, 10, 32)), channels))
        result = self._add(
            (turned,), output, lambda x: functional.linear(x, weight, bias), None, multiplies=True
        )
        self._line("nn.quantized.Linear", (turned,), output, _told(result))
        return output

    def _line(self, kind: str, inputs: Sequence[str], output: str, rest: str) -> None:
        self._made.lines.append(f"{kind} op_{output} {len(inputs)} 1 {' '.join(inputs)} {output} {rest}")


def weight_size(shape: Sequence[int]) -> int:
    """Return how many products of a weight are summed for one result."""
    size = 1
    for extent in shape[1:]:
        size *= extent
    return size


def _told(scale: Scale) -> str:
    return f"scale={scale[0]!r} zero_point={scale[1]}"


def _as_float32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))
