"""Kernels for softmax and normalization."""

from math import prod

from engine.compiler.graph import GroupNorm, LayerNorm, Softmax
from engine.compiler.kernels.normalization import GroupNormKernel, LayerNormKernel
from engine.compiler.kernels.softmax import SoftmaxKernel
from engine.compiler.memory.view import View, whole
from engine.compiler.passes.storage import CHANNELS_LAST
from engine.compiler.selection.call import Selector, has_channels_last, image_of, row_by_row, selects, view_of


@selects(Softmax)
def select_softmax(selector: Selector, node: Softmax) -> None:
    """Choose the kernel of a softmax along an axis."""
    x, out = view_of(node.inputs[0]), view_of(node.output)
    others = [axis for axis in range(len(x.shape)) if axis != node.axis]
    others.sort(key=lambda axis: -out.strides[axis])
    kernel = SoftmaxKernel(
        length=x.shape[node.axis],
        x_step=x.strides[node.axis],
        out_step=out.strides[node.axis],
        shape=tuple(x.shape[axis] for axis in others),
        x_strides=tuple(x.strides[axis] for axis in others),
        out_strides=tuple(out.strides[axis] for axis in others),
        is_log=node.is_log,
        skip_masked=node.skip_masked,
        is_dynamic=selector.is_dynamic and x.strides[node.axis] == out.strides[node.axis] == 1,
    )
    selector.call(kernel, x, out)


@selects(LayerNorm)
def select_layer_norm(selector: Selector, node: LayerNorm) -> None:
    """Choose the kernel of a layer normalization: lines are the normalized axes end to end."""
    x, out = view_of(node.inputs[0]), view_of(node.output)
    shape = _lines(x, node.axes)
    lines, target = x.reshaped(shape), out.in_shape(shape)
    if lines is None or lines.strides[1] != 1:
        lines = row_by_row(selector, x).in_shape(shape)
    parameters = [array for array in (node.weight, node.bias) if array is not None]
    kernel = LayerNormKernel(
        rows=lines.shape[0],
        length=lines.shape[1],
        x_step=lines.strides[0],
        out_step=target.strides[0],
        eps=node.eps,
        has_weight=node.weight is not None,
        has_bias=node.bias is not None,
        is_centred=node.is_centred,
        is_dynamic=selector.is_dynamic,
    )
    selector.call(kernel, lines, *map(selector.constant, parameters), target)


@selects(GroupNorm)
def select_group_norm(selector: Selector, node: GroupNorm) -> None:
    """Choose the kernel of a group normalization of images."""
    x, out = image_of(node.inputs[0]), image_of(node.output)
    parameters = [array for array in (node.weight, node.bias) if array is not None]
    pixels = _pixels(selector, x)
    target = out if out.strides[1] == 1 else selector.temporary(out.shape, CHANNELS_LAST)
    kernel = GroupNormKernel(
        images=x.shape[0],
        pixels=pixels.shape[1],
        channels=x.shape[1],
        groups=node.groups,
        x_strides=(pixels.strides[0], pixels.strides[1]),
        out_strides=(target.strides[0], target.strides[3]),
        eps=node.eps,
        has_weight=node.weight is not None,
        has_bias=node.bias is not None,
    )
    selector.call(kernel, pixels, *map(selector.constant, parameters), target)
    if target is not out:
        selector.copy(target, out)


def _pixels(selector: Selector, view: View) -> View:
    """Return images as (batch, pixels, channels), copied unless pixels are evenly spaced and channels contiguous."""
    images, channels, rows, columns = view.shape
    shape = (images, rows * columns, channels)
    pixels = view.permuted(CHANNELS_LAST).reshaped(shape)
    if pixels is not None and has_channels_last(view):
        return pixels
    copy = selector.temporary(view.shape, CHANNELS_LAST)
    selector.copy(view, copy)
    return whole(copy.buffer, shape)


def _lines(view: View, axes: int) -> tuple[int, int]:
    """Return the shape of a tensor as a matrix of its last axes."""
    length = prod(view.shape[len(view.shape) - axes :])
    return view.size // length, length
