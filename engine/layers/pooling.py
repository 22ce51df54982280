"""Max, average and LP pooling over windows, in one, two and three dimensions.

The number of spatial axes is part of a type's name, since an input may come with or without its batch axis: each
function here registers the layers of one number.
"""

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.kernels.batches import add_batch, spread
from engine.kernels.pooling import avg_pool, lp_pool, max_pool, max_pool_with_indices, pool_shape
from engine.spec import TensorSpec

Windows = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _windows(
    rank: int, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints = (1,)
) -> Windows:
    """Spread kernel size, stride (by default the kernel size), padding and dilation over the spatial axes."""
    kernel = spread("kernel_size", kernel_size, rank)
    return (
        kernel,
        spread("stride", stride, rank) if stride else kernel,
        spread("padding", padding, rank),
        spread("dilation", dilation, rank),
    )


def _pooled(input: TensorSpec, rank: int, windows: Windows, ceil_mode: bool) -> TensorSpec:
    batched, unbatched = add_batch(input.shape, rank)
    shape = pool_shape(batched, *windows, ceil_mode)
    return input.with_shape(shape[1:] if unbatched else shape)


def _register_max_pool(rank: int) -> None:
    def infer(
        input: TensorSpec,
        kernel_size: Ints,
        stride: Ints | None,
        padding: Ints,
        dilation: Ints,
        ceil_mode: bool,
        return_indices: bool,
    ) -> TensorSpec | list[TensorSpec]:
        windows = _windows(rank, kernel_size, stride, padding, dilation)
        output = _pooled(input, rank, windows, ceil_mode)
        return [output, TensorSpec(output.shape, np.dtype(np.int64))] if return_indices else output

    @layer(f"nn.MaxPool{rank}d", f"F.max_pool{rank}d", infer=infer)
    def forward(
        input: Array,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = (0,),
        dilation: Ints = (1,),
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Array | list[Array]:
        """Take the maximum of every window, and where it lies where `return_indices` is set."""
        windows = _windows(rank, kernel_size, stride, padding, dilation)
        shape, unbatched = add_batch(input.shape, rank)
        batched = input.reshape(shape)
        if not return_indices:
            output = max_pool(batched, *windows, ceil_mode)
            return output[0] if unbatched else output
        maxima, indices = max_pool_with_indices(batched, *windows, ceil_mode)
        return [maxima[0], indices[0]] if unbatched else [maxima, indices]


def _register_avg_pool(rank: int) -> None:
    def infer(
        input: TensorSpec, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool
    ) -> TensorSpec:
        return _pooled(input, rank, _windows(rank, kernel_size, stride, padding), ceil_mode)

    @layer(f"nn.AvgPool{rank}d", f"F.avg_pool{rank}d", infer=infer)
    def forward(
        input: Array,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        """Take the mean of every window."""
        kernel, strides, paddings, _ = _windows(rank, kernel_size, stride, padding)
        shape, unbatched = add_batch(input.shape, rank)
        batched = input.reshape(shape)
        output = avg_pool(batched, kernel, strides, paddings, ceil_mode, count_include_pad, divisor_override)
        return output[0] if unbatched else output


def _register_lp_pool(rank: int) -> None:
    def infer(input: TensorSpec, kernel_size: Ints, stride: Ints | None, ceil_mode: bool) -> TensorSpec:
        return _pooled(input, rank, _windows(rank, kernel_size, stride, (0,)), ceil_mode)

    @layer(f"nn.LPPool{rank}d", f"F.lp_pool{rank}d", infer=infer)
    def forward(
        input: Array, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> Array:
        """Take the `norm_type` norm of every window."""
        kernel, strides, _, _ = _windows(rank, kernel_size, stride, (0,))
        shape, unbatched = add_batch(input.shape, rank)
        output = lp_pool(input.reshape(shape), norm_type, kernel, strides, ceil_mode)
        return output[0] if unbatched else output


for _rank in (1, 2, 3):
    _register_max_pool(_rank)
    _register_avg_pool(_rank)
    _register_lp_pool(_rank)
