"""Lowering of a quantized model: int8 convolutions, and tensors that stay integers between them.

An operand with a scale is rounded to its quantized values for every reader. So it is quantized where it is computed
(`Quantize`), and dequantized for those that read it as float32 (`Dequantize`): which of the two exists in memory, if
not both, is decided later.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from engine.compiler.emit.int8 import MAX_TAPS, WORD_CHANNELS, words
from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.graph import (
    Concatenation,
    Constant,
    Convolution,
    Dequantize,
    EpilogueNode,
    Int8Convolution,
    Int8Linear,
    Linear,
    Node,
    Pool,
    Quantize,
    Requantize,
    Reshape,
    RowQuantize,
    Tensor,
    Upsample,
)
from engine.compiler.lowering.looks import look_node
from engine.compiler.memory.view import Buffer, BufferKind, View, whole
from engine.quantization.layer import Int8Layer
from engine.quantization.tensor_scale import TensorScale
from engine.run.plan import Step

Add = Callable[..., list[Tensor]]
"""Adds a node to the graph; returns its outputs, of the given shapes."""


def int8_contraction(add: Add, node: Node, int8: Int8Layer) -> Node | None:
    """Return the node that does a convolution or linear layer in integers; None where no kernel can.

    Args:
        add: puts the node of its input's integers into the graph.
        node: the same in float32, not in the graph yet.
        int8: its int8 computation.
    """
    scale = int8.input_scale
    if scale is None:
        return _dynamic(add, node, int8) if isinstance(node, Linear) and node.inputs[0].rank > 1 else None
    if not isinstance(node, Convolution | Linear):
        return None
    (x,) = node.inputs
    if isinstance(node, Linear):
        return _linear(add, node, int8, scale) if x.rank > 1 else None
    integers = int8.weights.integers
    weights = replace(int8.weights, integers=integers[:, :, None] if integers.ndim == 3 else integers)
    made = Int8Convolution(
        node.steps,
        [],
        weights=weights,
        bias=int8.bias,
        x_scale=scale,
        stride=node.stride,
        padding=node.padding,
        dilation=node.dilation,
        groups=node.groups,
    )
    taps = prod(integers.shape[2:])
    if taps > MAX_TAPS if made.is_depthwise else made.groups > 1 and integers.shape[1] % WORD_CHANNELS:
        return None
    made.inputs.append(integers_of(add, node, x, scale))
    return _with_relu(made, int8)


def _linear(add: Add, node: Linear, int8: Int8Layer, scale: TensorScale) -> Node:
    """Return the node of a linear layer; of more than two axes, all but the last one become rows."""
    (x,) = node.inputs
    (*rows, columns), filters = x.shape, len(int8.weights.integers)
    if len(rows) > 1:
        (x,) = add(_reshape(node, x, (prod(rows), columns)), (prod(rows), columns))
    made = Int8Convolution(
        node.steps,
        [integers_of(add, node, x, scale)],
        weights=replace(int8.weights, integers=int8.weights.integers[:, :, None, None]),
        bias=int8.bias,
        x_scale=scale,
    )
    flat = _with_relu(made, int8)
    if len(rows) == 1:
        return flat
    (result,) = add(flat, (prod(rows), filters))
    return _reshape(node, result, (*rows, filters))


def _reshape(node: Node, tensor: Tensor, shape: tuple[int, ...]) -> Node:
    return look_node(node.steps[0], tensor, lambda view: view.reshaped(shape))


def _with_relu(node: EpilogueNode, int8: Int8Layer) -> Node:
    if int8.relu:
        node.epilogue = apply("relu", node.epilogue)
    return node


def _dynamic(add: Add, node: Linear, int8: Int8Layer) -> Node:
    """Return the node of a linear layer whose rows have scales of their own: sums * scales of both + bias."""
    (x,) = node.inputs
    known = next((user for user in x.users if isinstance(user, RowQuantize)), None)
    if known is None:
        shapes = (*x.shape[:-1], words(x.shape[-1])), (*x.shape[:-1], 1)
        integers, scales = add(RowQuantize([node.steps[0]], [x]), *shapes)
    else:
        integers, scales = known.outputs
    weights = replace(int8.weights, integers=int8.weights.integers[:, :, None, None])
    made = Int8Linear(node.steps, [integers, scales], weights=weights)
    made.epilogue = apply("mul", Leaf(0), Leaf(1))
    if int8.bias is not None:
        made.inputs += add(Constant([], [], array=int8.bias), int8.bias.shape)
        made.epilogue = apply("add", made.epilogue, Leaf(2))
    return made


def integers_of(add: Add, node: Node, tensor: Tensor, scale: TensorScale) -> Tensor:
    """Return the quantized form of a tensor: its source, or a new one."""
    source = tensor.node
    if isinstance(source, Dequantize):
        integers = source.inputs[0]
        return integers if source.scale == scale else _requantized(add, node.steps[0], integers, scale)
    for user in tensor.users:
        if isinstance(user, Quantize) and user.scale == scale:
            return user.output
    return quantized(add, node.steps[0], tensor, scale)


def quantized(add: Add, step: int, tensor: Tensor, scale: TensorScale) -> Tensor:
    """Put the node that makes integers of a tensor into the graph; returns these."""
    images, channels, *pixels = tensor.shape
    (integers,) = add(Quantize([step], [tensor], scale), (images, words(channels), *pixels))
    integers.scale, integers.channels = scale, channels
    return integers


def _requantized(add: Add, step: int, integers: Tensor, scale: TensorScale) -> Tensor:
    """Return integers by another scale: those that there are already, or new ones."""
    for user in integers.users:
        if isinstance(user, Requantize) and user.scale == scale:
            return user.output
    (made,) = add(Requantize([step], [integers], _scale(integers), scale), integers.shape)
    made.scale, made.channels = scale, integers.channels
    return made


def _dequantized(add: Add, step: int, integers: Tensor) -> Tensor:
    """Put the node that makes float32 of integers into the graph; returns these."""
    images, _, *pixels = integers.shape
    return add(Dequantize([step], [integers], _scale(integers)), (images, integers.channels, *pixels))[0]


def _scale(integers: Tensor) -> TensorScale:
    if integers.scale is None:
        raise ValueError("a tensor of float32 in place of integers")
    return integers.scale


def rounded(add: Add, step: Step, node: Node, place: int, tensor: Tensor) -> Tensor:
    """Return an output of a node as float32, rounded to its quantized values where it has a scale."""
    scales = step.layer.output_scales
    scale = scales[place] if scales else None
    first = node.steps[0]
    if tensor.scale is not None:
        if scale is not None and scale != tensor.scale:
            tensor = _requantized(add, first, tensor, scale)
        return _dequantized(add, first, tensor)
    if scale is None:
        return tensor
    return _dequantized(add, first, quantized(add, first, tensor, scale))


def may_be_rounded(step: Step, ranks: list[int]) -> bool:
    """Return whether kernels can round an operator's outputs, of so many axes each: channels are the second one."""
    return all(
        scale is None or rank in (2, 3, 4)
        for scale, rank in zip(step.layer.output_scales, ranks, strict=False)
    )


def flowing(
    add: Add, node: Node, step: Step, shapes: list[tuple[int, ...]]
) -> tuple[Node, list[Tensor]] | None:
    """Return the int8 counterpart of a node that moves or compares float32, and its outputs' form.

    None where that is not the same, or no kernel can. Its outputs' integers may be by another scale than the operator's
    are: no rounding changes which of two numbers is larger, so that they can be requantized after it.

    Args:
        add: puts nodes that requantize its inputs into the graph.
        node: the node in float32, not in the graph yet.
        step: its operator.
        shapes: shapes of its outputs.
    """
    scales = [scale for scale in step.layer.output_scales if scale is not None]
    sources = [tensor.node for tensor in node.inputs]
    integers = [source.inputs[0] for source in sources if isinstance(source, Dequantize)]
    if not scales or not integers or len(integers) < len(sources):
        return None
    made = _moved(node, integers, shapes)
    if made is None:
        return None
    if isinstance(made, Concatenation | Upsample):  # of several scales, or of fewer integers than it gives
        made.inputs = [integers_of(add, node, tensor, scales[0]) for tensor in node.inputs]
    scale = made.inputs[0].scale
    forms = [
        Tensor((shape[0], words(shape[1]), *shape[2:]), made, scale=scale, channels=shape[1])
        for shape in shapes
    ]
    return made, forms


def _moved(node: Node, inputs: list[Tensor], shapes: list[tuple[int, ...]]) -> Node | None:
    match node:
        case Pool(how="max", dilation=(1, 1)) if all(
            pad < size for pad, size in zip(node.padding, node.window, strict=True)
        ):
            return replace(node, inputs=inputs)
        case Concatenation(axis=1) if all(tensor.channels % WORD_CHANNELS == 0 for tensor in inputs[:-1]):
            return Concatenation(node.steps, inputs, axis=1)
        case Upsample(how="nearest"):
            return Upsample(node.steps, inputs, how="nearest", scales=node.scales, align_corners=False)
        case Reshape():
            return _looked(node, inputs[0], shapes)
    return None


def _looked(node: Reshape, integers: Tensor, shapes: list[tuple[int, ...]]) -> Node | None:
    """Return a look at integers that shows some of their channels, or leaves out pixels where there is but one."""
    images, _, *pixels = integers.shape
    logical = (images, integers.channels, *pixels)
    seen = node.look(whole(Buffer(BufferKind.ARENA, 0), logical, (0, *range(2, len(logical)), 1)))
    if seen is None or any(len(shape) < 2 or shape[0] != images for shape in shapes):
        return None
    starts = []
    for view, shape in zip(seen, shapes, strict=True):
        ends = view.offset + shape[1] == integers.channels
        is_part = shape[2:] == tuple(pixels) or set(shape[2:]) | set(pixels) <= {1}
        keeps_pixels = list(view.strides[2:]) == _pixel_strides(logical) or set(pixels) <= {1}
        if view.offset % WORD_CHANNELS or not (ends or shape[1] % WORD_CHANNELS == 0):
            return None
        if not (is_part and keeps_pixels and view.strides[1] == 1 and view.offset < integers.channels):
            return None
        starts.append((view.offset // WORD_CHANNELS, (images, words(shape[1]), *shape[2:])))

    def look(view: View) -> list[View] | None:
        parts = [view.sliced(1, start, shape[1]).reshaped(shape) for start, shape in starts]
        found = [part for part in parts if part is not None]
        return found if len(found) == len(parts) else None

    return Reshape(node.steps, [integers], look=look)


def _pixel_strides(shape: tuple[int, ...]) -> list[int]:
    order = (0, *range(2, len(shape)), 1)
    return list(whole(Buffer(BufferKind.ARENA, 0), shape, order).strides[2:])
