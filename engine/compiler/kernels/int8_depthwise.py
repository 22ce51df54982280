"""Depthwise convolution of 8-bit integers, four channels to an element.

Arguments as of `Depthwise`. Integers are multiplied and summed as float32, which is exact: a sum of at most
`MAX_TAPS` products stays below 2**24. "Bias" holds two numbers for each channel: the scale of its sum, and the bias
itself.
"""

from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.int8 import WORD_CHANNELS, integers_of, load_steps, store_bytes, words
from engine.compiler.emit.types import IRIndex, IRValue
from engine.compiler.kernels.depthwise import Depthwise
from engine.compiler.memory.region import Region, line, pixels
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Depthwise(Depthwise):
    """A depthwise convolution of integers of one exact shape; strides count elements of four channels.

    Attributes:
        x_scale: scale of the input.
        out_scale: scale of the output, where that is stored as integers; None where it is float32.
    """

    x_scale: TensorScale
    out_scale: TensorScale | None = None

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        shape = self.shape
        x = pixels(shape.images, self.padding.x_size, words(shape.groups), self.strides.x)
        channels = shape.groups if self.out_scale is None else words(shape.groups)
        out = pixels(shape.images, shape.size, channels, self.strides.out, is_written=True)
        operands = self.epilogue.regions(shape.images, shape.size, shape.out_channels)
        return x, *map(line, self.packed_sizes), out, *operands

    @property
    def packed_sizes(self) -> tuple[int, int]:
        """Elements of packed weights, and of what belongs to channels."""
        return self.shape.taps * self._packed_channels, 2 * self._packed_channels

    def pack(self, weight: Array, bias: Array | None) -> tuple[Array, Array]:
        """Pack integers (channels, 1, rows, columns) as float32, and scales and bias of channels.

        Args:
            weight: int8.
            bias: float32 (2, channels): the scale of the sum, and the bias.
        """
        if bias is None:
            raise ValueError("integers without scales; expected the scale of each sum")
        weights, _ = Depthwise.pack(self, weight.astype(np.float32), None)
        starts = np.zeros((2, self._packed_channels), np.float32)
        starts[:, : self.shape.groups] = bias
        return weights, starts.reshape(-1)

    def _element(self, e: Emitter, channel: IRIndex) -> IRIndex:
        return e.divmod(channel, WORD_CHANNELS)[0]

    def _out_element(self, e: Emitter, channel: IRIndex) -> IRIndex:
        return channel if self.out_scale is None else e.divmod(channel, WORD_CHANNELS)[0]

    def _number(self, e: Emitter, x: IRValue, offset: int, count: int) -> IRValue:
        steps = load_steps(e, x, offset, count=count)
        zero_point = self.x_scale.zero_point
        return e.fsub(steps, e.splat(float(zero_point))) if zero_point else steps

    def _sum_start(self, e: Emitter, bias: IRValue, channel: IRIndex) -> IRValue:
        del bias, channel
        return e.splat(0.0)

    def _results(self, e: Emitter, bias: IRValue, sums: list[IRValue], channel: IRIndex) -> list[IRValue]:
        """Return sum * factor + bias, each operation rounded, as `Int8Layer` does."""
        factor, start = e.load(bias, channel), e.load(bias, channel, self._packed_channels)
        return [e.fadd(e.fmul(total, factor), start) for total in sums]

    def _store(self, e: Emitter, result: IRValue, target: IRValue, offset: int, count: int) -> None:
        if self.out_scale is None:
            Depthwise._store(self, e, result, target, offset, count)
        else:
            store_bytes(e, integers_of(e, result, self.out_scale), target, offset, count=count)
