"""Adaptive pooling in one, two and three dimensions: parameterised by output size, not by window size."""

from collections.abc import Sequence

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import add_batch, spread
from engine.dtypes import Array
from engine.kernels.adaptive_pooling import (
    adaptive_avg_pool,
    adaptive_max_pool,
    adaptive_maxima,
    adaptive_shape,
)
from engine.spec import TensorSpec


def _cells(shape: Sequence[int], output_size: Ints, rank: int) -> tuple[int, ...]:
    """Return the cells of each spatial axis of a batched shape; PNNX writes 0 for PyTorch's None, as it is."""
    wanted = spread("output_size", output_size, rank)
    return tuple(cells or size for cells, size in zip(wanted, shape[2:], strict=True))


def _pooled(input: TensorSpec, rank: int, output_size: Ints) -> TensorSpec:
    batched, unbatched = add_batch(input.shape, rank)
    shape = adaptive_shape(batched, _cells(batched, output_size, rank))
    return input.with_shape(shape[1:] if unbatched else shape)


def _register_adaptive_avg_pool(rank: int) -> None:
    def infer(input: TensorSpec, output_size: Ints) -> TensorSpec:
        return _pooled(input, rank, output_size)

    @layer(f"nn.AdaptiveAvgPool{rank}d", f"F.adaptive_avg_pool{rank}d", infer=infer)
    def forward(input: Array, output_size: Ints) -> Array:
        """Take the mean of every cell."""
        shape, unbatched = add_batch(input.shape, rank)
        output = adaptive_avg_pool(input.reshape(shape), _cells(shape, output_size, rank))
        return output[0] if unbatched else output


def _register_adaptive_max_pool(rank: int) -> None:
    def infer(input: TensorSpec, output_size: Ints, return_indices: bool) -> TensorSpec | list[TensorSpec]:
        output = _pooled(input, rank, output_size)
        return [output, TensorSpec(output.shape, np.dtype(np.int64))] if return_indices else output

    @layer(f"nn.AdaptiveMaxPool{rank}d", f"F.adaptive_max_pool{rank}d", infer=infer)
    def forward(input: Array, output_size: Ints, return_indices: bool = False) -> Array | list[Array]:
        """Take the maximum of every cell, and where it lies where `return_indices` is set."""
        shape, unbatched = add_batch(input.shape, rank)
        batched, cells = input.reshape(shape), _cells(shape, output_size, rank)
        if not return_indices:
            output = adaptive_maxima(batched, cells)
            return output[0] if unbatched else output
        maxima, indices = adaptive_max_pool(batched, cells)
        return [maxima[0], indices[0]] if unbatched else [maxima, indices]


for _rank in (1, 2, 3):
    _register_adaptive_avg_pool(_rank)
    _register_adaptive_max_pool(_rank)
