"""Cost model of convolution kernels."""

from dataclasses import dataclass, replace
from math import inf

from engine.compiler.graph import Convolution
from engine.compiler.kernels.epilogue import Epilogue
from engine.compiler.kernels.shapes import ConvShape, ImplicitPadding
from engine.compiler.memory.view import View
from engine.compiler.selection.bf16 import FINISHED_VECTOR
from engine.compiler.selection.call import Selector

PEAK = 11.0
"""Multiply-adds per lane and nanosecond that a register tile reaches, about; only ratios of the figures here matter."""
STREAM = 10.0
"""Bytes per nanosecond at which weights are read that do not fit the core's own cache."""
DIRECT_STREAM = 7.5
"""The same for a direct convolution of few pixels."""
SCRATCH_RATE = 60.0
"""Bytes per nanosecond that transformed tiles are written and read at."""
NEAR_STREAM = 25.0
"""Bytes per nanosecond at which weights are read that fit it, but had to make room meanwhile."""
COMPACT_OUTPUTS, COMPACT_TILES, COMPACT_REGISTERS = 4, 4, 32
"""The tile of convolutions that transform their own filters, how many they multiply at a time, and
with how many registers."""
COMPACT_STRIP = 66.0
"""Nanoseconds that they take for so many tiles, one channel and a vector of filters."""
NEAR_CACHE = 1 << 20
"""Bytes that stay in the core's own cache while other data streams through it."""


@dataclass(frozen=True, slots=True)
class Work:
    """A convolution as its kernels see it.

    Attributes:
        node: the node.
        x: input.
        out: output.
        epilogue: operations on the results.
        operands: operands of the epilogue.
    """

    node: Convolution
    x: View
    out: View
    epilogue: Epilogue
    operands: list[View]

    @property
    def shape(self) -> ConvShape:
        """The shape, in the terms of kernels."""
        node, (images, _, rows, columns) = self.node, self.out.shape
        filters, channels, *kernel = node.weight.shape
        return ConvShape(
            images=images,
            size=(rows, columns),
            channels=channels,
            filters=filters // node.groups,
            kernel=(kernel[0], kernel[1]),
            stride=node.stride,
            dilation=node.dilation,
            groups=node.groups,
        )

    @property
    def padding(self) -> ImplicitPadding:
        """The zeros around an input that has none in memory."""
        top, left, *_ = self.node.padding
        return ImplicitPadding((self.x.shape[2], self.x.shape[3]), (top, left))


def plain_time(selector: Selector, work: Work) -> float:
    """Return the nanoseconds that the convolution of one image is expected to take in float32."""
    work = replace(work, out=work.out.sliced(0, 0, 1))
    outputs = best_tile(selector, work)
    vectors = work.out.size // work.out.shape[1] * -(-work.out.shape[1] // selector.lanes)
    if outputs:
        return _winograd_time(selector, work, outputs)
    # of a vector that filters do not fill, the other lanes take their time as well
    fill = vectors * selector.lanes / work.out.size
    return _direct_time(selector, work) * fill + FINISHED_VECTOR * vectors


def best_tile(selector: Selector, work: Work) -> int:
    """Return the outputs of the Winograd tile that is expected to be fastest, 0 where a direct convolution is."""
    node = work.node
    rows, columns = node.weight.shape[2:]
    channels = node.weight.shape[1]
    plain = node.stride == (1, 1) and node.dilation == (1, 1) and node.groups == 1
    if (rows, columns) != (3, 3) or not plain or channels < selector.lanes:
        return 0
    times = {outputs: _winograd_time(selector, work, outputs) for outputs in (2, 4)}
    times[0] = _direct_time(selector, work)
    return min(times, key=times.__getitem__)


def _direct_time(selector: Selector, work: Work) -> float:
    return _overlapped(product_time(selector, work), 4 * work.node.weight.size, DIRECT_STREAM)


def product_time(selector: Selector, work: Work) -> float:
    """Return the nanoseconds that the multiply-adds of a direct convolution are expected to take."""
    return float(work.out.size * work.node.weight[0].size / (PEAK / 2 * selector.lanes))


def _winograd_time(selector: Selector, work: Work, outputs: int) -> float:
    return min(_transformed_time(selector, work, outputs), _compact_time(selector, work, outputs))


def is_compact(selector: Selector, work: Work, outputs: int) -> bool:
    """Whether a Winograd convolution is to transform its filters while it multiplies, which changes no bit.

    Here it counts what weights take of the core's own cache, even if they fit: evicted lines are read again later.
    """
    transformed = _transformed_time(selector, work, outputs, NEAR_STREAM)
    return _compact_time(selector, work, outputs, NEAR_STREAM) < transformed


def _transformed_time(selector: Selector, work: Work, outputs: int, near: float = inf) -> float:
    """Return the nanoseconds with filters that were transformed before; `near` is the rate of the core's own cache."""
    filters, channels = work.node.weight.shape[:2]
    tiles, positions = tiles_of(work, outputs), (outputs + 2) ** 2
    products = positions * tiles * channels * filters / (PEAK / 2 * selector.lanes)
    weights = _overlapped(products, positions * channels * filters * 4, STREAM, near)
    return float(_patches_time(work, outputs) + weights)


def _compact_time(selector: Selector, work: Work, outputs: int, near: float = inf) -> float:
    """Return the same with filters that are transformed meanwhile; inf where the processor has too few registers."""
    if outputs != COMPACT_OUTPUTS or selector.target.registers < COMPACT_REGISTERS:
        return inf
    filters, channels = work.node.weight.shape[:2]
    strips = -(-tiles_of(work, outputs) // COMPACT_TILES)
    products = COMPACT_STRIP * strips * channels * -(-filters // selector.lanes)
    weights = _overlapped(products, 4 * work.node.weight.size, STREAM, near)
    return float(_patches_time(work, outputs) + weights)


def tiles_of(work: Work, outputs: int) -> int:
    """Return how many tiles of so many rows and columns of outputs a Winograd convolution has."""
    images, _, rows, columns = work.out.shape
    return images * -(-rows // outputs) * -(-columns // outputs)


def _patches_time(work: Work, outputs: int) -> float:
    """Return the nanoseconds that the patches of a Winograd convolution take, transformed patches and products."""
    filters, channels = work.node.weight.shape[:2]
    return float(2 * 4 * (outputs + 2) ** 2 * tiles_of(work, outputs) * (channels + filters) / SCRATCH_RATE)


def _overlapped(products: float, weight_bytes: int, rate: float, near: float = inf) -> float:
    """Return the time of products whose weights are prefetched meanwhile: mostly the longer of the two."""
    stream = max(0, weight_bytes - NEAR_CACHE) / rate + min(weight_bytes, NEAR_CACHE) / near
    return max(products, stream) + 0.3 * min(products, stream)
