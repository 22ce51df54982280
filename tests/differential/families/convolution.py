"""Convolutions of every kind, and linear layers."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_FILTERS = (1, 2, 3, 7, 8, 16, 17, 24, 33, 64, 96, 130)
_MANY_FILTERS = (64, 128, 256, 320, 512)
_KERNELS = ((1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (2, 2), (1, 3), (3, 1), (5, 5), (7, 7), (4, 3), (1, 7))


def _filters(d: Drawing, channels: int) -> int:
    return d.pick(_MANY_FILTERS if channels >= 64 and d.chance(0.5) else _FILTERS)


def _spatial(d: Drawing, kernel: tuple[int, int]) -> dict[str, Any]:
    """Draw stride, padding and dilation."""
    stride = (1, 1) if d.chance(0.6) else (d.number(1, 3), d.number(1, 3))
    dilation = (1, 1) if d.chance(0.75) else (d.number(1, 3), d.number(1, 3))
    padding = (0, 0) if d.chance(0.3) else (kernel[0] // 2, kernel[1] // 2)
    if d.chance(0.2):
        padding = (d.number(0, 3), d.number(0, 3))
    return {"stride": stride, "padding": padding, "dilation": dilation}


def _groups(d: Drawing, channels: int) -> int:
    if d.chance(0.75):
        return 1
    return d.pick([count for count in range(1, channels + 1) if channels % count == 0])


@family(4, weight=12)
def convolution(d: Drawing, x: str) -> None:
    channels = d.shape(x)[1]
    kernel, groups = d.pick(_KERNELS), _groups(d, channels)
    filters = -(-_filters(d, channels) // groups) * groups
    _convolve(d, x, filters, kernel, groups)


@family(4, weight=3)
def depthwise(d: Drawing, x: str) -> None:
    channels = d.shape(x)[1]
    _convolve(d, x, channels * (2 if d.chance(0.1) else 1), d.pick(_KERNELS), channels)


@family(4, weight=2)
def heavy_convolution(d: Drawing, x: str) -> None:
    """As many weights as the near cache does not hold."""
    channels = d.shape(x)[1]
    if channels < 32:
        filters = d.pick((128, 256, 512))
        _convolve(d, x, filters, (1, 1), 1)
        return
    kernel = d.pick(((3, 3), (3, 3), (1, 1), (5, 5), (2, 2)))
    least = (1 << 18) // (channels * kernel[0] * kernel[1]) + 1
    _convolve(d, x, least + d.number(0, 16), kernel, 1)


def _convolve(d: Drawing, x: str, filters: int, kernel: tuple[int, int], groups: int) -> None:
    channels = d.shape(x)[1]
    spatial: dict[str, Any] = dict(_spatial(d, kernel))
    if d.chance(0.08):
        spatial["padding"] = d.pick(("same", "valid"))
    weight = (filters, channels // groups, *kernel)
    if d.chance(0.12):
        constant = d.constant(weight)
        inputs = [x, constant] if d.chance(0.5) else [x, constant, d.constant((filters,))]
        bias: dict[str, Any] = {} if len(inputs) == 3 else {"bias": None}
        d.add("F.conv2d", inputs, **bias, **spatial, groups=groups)
        return
    has_bias = d.chance(0.7)
    d.add(
        "nn.Conv2d",
        [x],
        weights={"weight": weight} | ({"bias": (filters,)} if has_bias else {}),
        bias=has_bias,
        in_channels=channels,
        out_channels=filters,
        kernel_size=kernel,
        groups=groups,
        padding_mode="zeros" if d.chance(0.95) else d.pick(("reflect", "replicate")),
        **spatial,
    )


@family(4, weight=3)
def transposed(d: Drawing, x: str) -> None:
    channels = d.shape(x)[1]
    kernel, groups = d.pick(_KERNELS), _groups(d, channels)
    spatial = _spatial(d, kernel) | {"stride": d.pick(((2, 2), (2, 2), (1, 1), (3, 2), (1, 2), (4, 4)))}
    limits = [max(s, a) - 1 for s, a in zip(spatial["stride"], spatial["dilation"], strict=True)]
    extra = (d.number(0, limits[0]), d.number(0, limits[1])) if d.chance(0.5) else (0, 0)
    filters = d.pick((1, 2, 3, 8, 16, 17, 40))
    weight = (channels, filters, *kernel)
    if d.chance(0.12):
        bias = d.constant((filters * groups,))
        inputs = [x, d.constant(weight), bias]
        d.add("F.conv_transpose2d", inputs, output_padding=extra, groups=groups, **spatial)
        return
    has_bias = d.chance(0.7)
    d.add(
        "nn.ConvTranspose2d",
        [x],
        weights={"weight": weight} | ({"bias": (filters * groups,)} if has_bias else {}),
        bias=has_bias,
        in_channels=channels,
        out_channels=filters * groups,
        kernel_size=kernel,
        output_padding=extra,
        groups=groups,
        **spatial,
    )


@family(weight=5)
def linear(d: Drawing, x: str) -> None:
    columns = d.shape(x)[-1]
    features = d.pick((1, 2, 5, 16, 31, 64, 100, 256))
    if d.chance(0.15):
        inputs = [x, d.constant((features, columns))]
        if d.chance(0.5):
            d.add("F.linear", [*inputs, d.constant((features,))])
        else:
            d.add("F.linear", inputs, bias=None)
        return
    has_bias = d.chance(0.7)
    d.add(
        "nn.Linear",
        [x],
        weights={"weight": (features, columns)} | ({"bias": (features,)} if has_bias else {}),
        bias=has_bias,
        in_features=columns,
        out_features=features,
    )


@family(3, 4, weight=8)
def fused(d: Drawing, x: str) -> None:
    """A product and at once what is done to its results, with tensors of any shape that epilogues take."""
    before = len(d.lines)
    d.pick(
        (convolution, convolution, linear, transposed, heavy_convolution) if d.rank(x) == 4 else (linear,)
    )(d, x)
    if len(d.lines) == before or d.lines[-1].type == "pnnx.Attribute":
        return
    made = d.lines[-1].outputs[0]
    shape = d.shape(made)
    channel = 1 if len(shape) == 4 and d.chance(0.7) else len(shape) - 1
    for _ in range(d.number(1, 3)):
        kind = d.pick(("full", "full", "channel", "number", "image"))
        others = [y for y in d.alike(made) if y != made]
        if kind == "full":
            other = d.pick(others) if others and d.chance(0.7) else d.constant(shape)
        elif kind == "image":
            other = d.constant(tuple(e if axis < 2 else 1 for axis, e in enumerate(shape)))
        else:
            is_channel = kind == "channel"
            other = d.constant(
                tuple(e if is_channel and axis == channel else 1 for axis, e in enumerate(shape))
            )
        text = d.pick(("add(@0,@1)", "mul(@0,tanh(@1))", "max(@0,sub(@1,0.5))", "add(mul(@0,0.5),@1)"))
        (made,) = d.add("pnnx.Expression", [made, other], expr=text) or (made,)
