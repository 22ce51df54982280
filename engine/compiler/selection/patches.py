"""Convolutions of patches, whose windows are contiguous as in vision transformers: copied, each is a pixel.

A patch's elements, of all its channels, become the channels of one pixel. That is one copy of the input, in rows as
wide as a patch, instead of one that transposes its channels, whose few elements would leave vectors and reductions
short.
"""

from dataclasses import replace

from engine.compiler.graph import Convolution
from engine.compiler.memory.view import natural_strides
from engine.compiler.selection.call import Selector, has_channels_last
from engine.compiler.selection.work import Work, convolution_work

_LEAST_COLUMNS = 8
"""Columns of a patch from which on its rows are copied at about the speed of memory."""


def of_pixels(selector: Selector, work: Work[Convolution]) -> Work[Convolution]:
    """Return a convolution of patches as one of single pixels; any other as it is.

    Args:
        selector: receives the calls.
        work: the convolution of an image.
    """
    node, x, size = work.node, work.x, work.shape.size
    filters, channels, rows, columns = node.weight.shape
    is_tiling = node.stride == (rows, columns) and node.dilation == (1, 1) and not any(node.padding)
    if not is_tiling or node.groups > 1 or columns < _LEAST_COLUMNS or has_channels_last(x):
        return work
    images = x.shape[0]
    whole = x.sliced(2, 0, size[0] * rows).sliced(3, 0, size[1] * columns)
    apart = whole.in_shape((images, channels, size[0], rows, size[1], columns))
    source = apart.permuted((0, 2, 4, 1, 3, 5))
    target = selector.temporary(source.shape)
    selector.copy(source, target)
    depth = channels * rows * columns
    patched = replace(node, weight=node.weight.reshape(filters, depth, 1, 1), stride=(1, 1))
    pixels = natural_strides((images, *size, depth))
    x = replace(target, shape=(images, depth, *size), strides=(pixels[0], 1, *pixels[1:3]))
    return convolution_work(patched, patched.weight, (x, work.out), work.epilogue, work.operands)
