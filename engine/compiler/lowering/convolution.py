"""Convolutions, transposed convolutions and linear layers."""

from engine.binding.spatial_arguments import PADDING_MODES, padding_pairs, spread
from engine.compiler.graph import Convolution, Linear, Node, Pad, Tensor, TransposedConvolution
from engine.compiler.lowering.context import LoweringContext, lowers, of_image
from engine.compiler.lowering.looks import look, look_node
from engine.compiler.memory.view import View
from engine.dtypes import Array
from engine.kernels.windows import Pairs
from engine.spec import TensorSpec

_VOLUME = 5
"""Axes of a batch of volumes."""


@lowers("nn.Conv1d", "F.conv1d", "nn.Conv2d", "F.conv2d")
def convolution(context: LoweringContext) -> Node | None:
    """Lower a convolution of a batch of images or sequences with constant weights."""
    shape, weight = context.shape("input"), context.value("weight")
    if shape is None or not _are_weights(context) or len(shape) != weight.ndim or weight.ndim not in (3, 4):
        return None
    rank = weight.ndim - 2
    stride, dilation = (spread(name, context.value(name), rank) for name in ("stride", "dilation"))
    mode = PADDING_MODES[context.value("padding_mode")]
    pairs = padding_pairs(context.value("padding"), mode, shape[2:], weight.shape[2:], stride, dilation)
    x = context.tensor("input")
    if mode != "constant":
        x, pairs = _pad(context, x, mode, pairs), [(0, 0)] * rank
    (top, bottom), (left, right) = of_image(pairs, (0, 0))
    return Convolution(
        [context.index],
        [x],
        weight=_image_weight(weight),
        bias=context.value("bias"),
        stride=of_image(stride, 1),
        padding=(top, left, bottom, right),
        dilation=of_image(dilation, 1),
        groups=context.value("groups"),
        is_computed=_are_computed(context),
    )


@lowers("nn.Conv3d", "F.conv3d")
def flat_convolution(context: LoweringContext) -> Node | None:
    """Lower a convolution of volumes whose windows are flat: one of images, as many as volumes have layers."""
    shape, weight = context.shape("input"), context.value("weight")
    if shape is None or not _are_weights(context) or len(shape) != _VOLUME or weight.ndim != _VOLUME:
        return None
    stride, dilation = (spread(name, context.value(name), 3) for name in ("stride", "dilation"))
    mode = PADDING_MODES[context.value("padding_mode")]
    pairs = padding_pairs(context.value("padding"), mode, shape[2:], weight.shape[2:], stride, dilation)
    sizes = zip(weight.shape[2:], stride, pairs, strict=True)
    flat = [axis for axis, (size, step, pair) in enumerate(sizes) if size == step == 1 and not any(pair)]
    output = context.outputs[0]
    if not flat or mode != "constant" or not isinstance(output, TensorSpec):
        return None
    layers = flat[0]
    rows, columns = (axis for axis in range(3) if axis != layers)
    order = (0, 2 + layers, 1, 2 + rows, 2 + columns)
    transposed = tuple(shape[axis] for axis in order)
    x = look(context, context.tensor("input"), transposed, lambda view: view.permuted(order))
    images = (transposed[0] * transposed[1], *transposed[2:])
    x = look(context, x, images, lambda view: view.reshaped(images))
    node = Convolution(
        [context.index],
        [x],
        weight=weight.squeeze(2 + layers),
        bias=context.value("bias"),
        stride=(stride[rows], stride[columns]),
        padding=(pairs[rows][0], pairs[columns][0], pairs[rows][1], pairs[columns][1]),
        dilation=(dilation[rows], dilation[columns]),
        groups=context.value("groups"),
        is_computed=_are_computed(context),
    )
    made = tuple(output.shape[axis] for axis in order)
    (found,) = context.add(node, (made[0] * made[1], *made[2:]))
    back = tuple(map(order.index, range(_VOLUME)))

    def seen(view: View) -> View | None:
        apart = view.reshaped(made)
        return None if apart is None else apart.permuted(back)

    return look_node(context.index, found, seen)


def _pad(context: LoweringContext, x: Tensor, mode: str, pairs: Pairs) -> Tensor:
    """Put the margins that a convolution with a padding mode of its own has around its input."""
    margins = ((0, 0), (0, 0), *pairs)
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, margins, strict=True))
    return context.add(Pad([context.index], [x], margins=margins, mode=mode), shape)[0]


@lowers("nn.ConvTranspose1d", "F.conv_transpose1d", "nn.ConvTranspose2d", "F.conv_transpose2d")
def transposed_convolution(context: LoweringContext) -> Node | None:
    """Lower a transposed convolution of a batch of images or sequences with constant weights."""
    shape, weight = context.shape("input"), context.value("weight")
    if shape is None or not _are_weights(context) or len(shape) != weight.ndim or weight.ndim not in (3, 4):
        return None
    rank = weight.ndim - 2
    names = ("stride", "padding", "output_padding", "dilation")
    stride, padding, extra, dilation = (spread(name, context.value(name), rank) for name in names)
    return TransposedConvolution(
        [context.index],
        [context.tensor("input")],
        weight=_image_weight(weight),
        bias=context.value("bias"),
        stride=of_image(stride, 1),
        padding=of_image(padding, 0),
        output_padding=of_image(extra, 0),
        dilation=of_image(dilation, 1),
        groups=context.value("groups"),
        is_computed=_are_computed(context),
    )


def _image_weight(weight: Array) -> Array:
    """Return a kernel with an axis of rows."""
    return weight[:, :, None] if weight.ndim == 3 else weight


@lowers("nn.Linear", "F.linear")
def linear(context: LoweringContext) -> Node | None:
    """Lower x W^T + b with constant weights."""
    shape, weight, bias = context.shape("input"), context.value("weight"), context.value("bias")
    if shape is None or not _are_weights(context) or weight.ndim != 2:
        return None
    if bias is not None and bias.shape != weight.shape[:1]:
        return None
    return Linear(
        [context.index],
        [context.tensor("input")],
        weight=weight,
        bias=bias,
        is_computed=_are_computed(context),
        is_int4=context.step.layer.has_int4_weight,
    )


def _are_computed(context: LoweringContext) -> bool:
    """Whether weight or bias is an operand, which may depend on the shapes of the inputs."""
    return context.has_operand("weight") or context.has_operand("bias")


def _are_weights(context: LoweringContext) -> bool:
    """Whether weight and bias are float32 and the same in every run."""
    if not (context.is_constant("weight") and context.is_constant("bias")):
        return False
    shapes = [context.shape(name) for name in ("weight", "bias") if context.value(name) is not None]
    return None not in shapes
