"""Convolutions, transposed convolutions and linear layers."""

from engine.compiler.lowering.site import Site, lowers
from engine.compiler.nodes import Convolution, Linear, Node, TransposedConvolution
from engine.kernels.batches import spread
from engine.layers.convolution import padding_pairs


@lowers("nn.Conv2d", "F.conv2d")
def convolution(site: Site) -> Node | None:
    """Lower a 2-D convolution of a batch with constant weights and zero padding."""
    shape, weight, bias = site.shape("input"), site.value("weight"), site.value("bias")
    if shape is None or len(shape) != 4 or not _are_weights(site) or site.value("padding_mode") != "zeros":
        return None
    stride, dilation = (spread(name, site.value(name), 2) for name in ("stride", "dilation"))
    pairs = padding_pairs(site.value("padding"), "constant", weight.shape[2:], stride, dilation)
    (top, bottom), (left, right) = pairs
    return Convolution(
        [site.index],
        [site.tensor("input")],
        weight=weight,
        bias=bias,
        stride=(stride[0], stride[1]),
        padding=(top, left, bottom, right),
        dilation=(dilation[0], dilation[1]),
        groups=site.value("groups"),
        is_computed=_are_computed(site),
    )


@lowers("nn.ConvTranspose2d", "F.conv_transpose2d")
def transposed_convolution(site: Site) -> Node | None:
    """Lower a 2-D transposed convolution of a batch with constant weights."""
    shape, weight, bias = site.shape("input"), site.value("weight"), site.value("bias")
    if shape is None or len(shape) != 4 or not _are_weights(site):
        return None
    names = ("stride", "padding", "output_padding", "dilation")
    stride, padding, extra, dilation = (spread(name, site.value(name), 2) for name in names)
    return TransposedConvolution(
        [site.index],
        [site.tensor("input")],
        weight=weight,
        bias=bias,
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        output_padding=(extra[0], extra[1]),
        dilation=(dilation[0], dilation[1]),
        groups=site.value("groups"),
        is_computed=_are_computed(site),
    )


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
