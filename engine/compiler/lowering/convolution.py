"""Convolutions, transposed convolutions and linear layers."""

from engine.compiler.graph import Convolution, Linear, Node, Pad, Tensor, TransposedConvolution
from engine.compiler.lowering.site import Site, lowers, of_image
from engine.dtypes import Array
from engine.kernels.batches import spread
from engine.kernels.padding_arguments import PADDING_MODES, padding_pairs
from engine.kernels.windows import Pairs


@lowers("nn.Conv1d", "F.conv1d", "nn.Conv2d", "F.conv2d")
def convolution(site: Site) -> Node | None:
    """Lower a convolution of a batch of images or sequences with constant weights."""
    shape, weight = site.shape("input"), site.value("weight")
    if shape is None or not _are_weights(site) or len(shape) != weight.ndim or weight.ndim not in (3, 4):
        return None
    rank = weight.ndim - 2
    stride, dilation = (spread(name, site.value(name), rank) for name in ("stride", "dilation"))
    mode = PADDING_MODES[site.value("padding_mode")]
    pairs = padding_pairs(site.value("padding"), mode, shape[2:], weight.shape[2:], stride, dilation)
    x = site.tensor("input")
    if mode != "constant":
        x, pairs = _pad(site, x, mode, pairs), [(0, 0)] * rank
    (top, bottom), (left, right) = of_image(pairs, (0, 0))
    return Convolution(
        [site.index],
        [x],
        weight=_image_weight(weight),
        bias=site.value("bias"),
        stride=of_image(stride, 1),
        padding=(top, left, bottom, right),
        dilation=of_image(dilation, 1),
        groups=site.value("groups"),
        is_computed=_are_computed(site),
    )


def _pad(site: Site, x: Tensor, mode: str, pairs: Pairs) -> Tensor:
    """Put the margins that a convolution with a padding mode of its own has around its input."""
    margins = ((0, 0), (0, 0), *pairs)
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, margins, strict=True))
    return site.add(Pad([site.index], [x], margins=margins, mode=mode), shape)[0]


@lowers("nn.ConvTranspose1d", "F.conv_transpose1d", "nn.ConvTranspose2d", "F.conv_transpose2d")
def transposed_convolution(site: Site) -> Node | None:
    """Lower a transposed convolution of a batch of images or sequences with constant weights."""
    shape, weight = site.shape("input"), site.value("weight")
    if shape is None or not _are_weights(site) or len(shape) != weight.ndim or weight.ndim not in (3, 4):
        return None
    rank = weight.ndim - 2
    names = ("stride", "padding", "output_padding", "dilation")
    stride, padding, extra, dilation = (spread(name, site.value(name), rank) for name in names)
    return TransposedConvolution(
        [site.index],
        [site.tensor("input")],
        weight=_image_weight(weight),
        bias=site.value("bias"),
        stride=of_image(stride, 1),
        padding=of_image(padding, 0),
        output_padding=of_image(extra, 0),
        dilation=of_image(dilation, 1),
        groups=site.value("groups"),
        is_computed=_are_computed(site),
    )


def _image_weight(weight: Array) -> Array:
    """Return a kernel with an axis of rows."""
    return weight[:, :, None] if weight.ndim == 3 else weight


@lowers("nn.Linear", "F.linear")
def linear(site: Site) -> Node | None:
    """Lower x W^T + b with constant weights."""
    shape, weight, bias = site.shape("input"), site.value("weight"), site.value("bias")
    if shape is None or not _are_weights(site) or weight.ndim != 2:
        return None
    if bias is not None and bias.shape != weight.shape[:1]:
        return None
    return Linear(
        [site.index], [site.tensor("input")], weight=weight, bias=bias, is_computed=_are_computed(site)
    )


def _are_computed(site: Site) -> bool:
    """Whether weight or bias come by an operand, which may depend on the shapes of the inputs."""
    return site.has_operand("weight") or site.has_operand("bias")


def _are_weights(site: Site) -> bool:
    """Whether weight and bias are float32 and the same in every run."""
    if not (site.is_constant("weight") and site.is_constant("bias")):
        return False
    shapes = [site.shape(name) for name in ("weight", "bias") if site.value(name) is not None]
    return None not in shapes
