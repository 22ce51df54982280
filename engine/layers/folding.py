"""Windows of an image as columns, and back: unfold and fold."""

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import add_batch, spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.folding import fold, fold_shape, unfold, unfold_shape
from engine.spec import TensorSpec

_RANK = 2
"""PyTorch folds images only."""


def _windows(kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> dict[str, tuple[int, ...]]:
    return {
        "kernel_size": spread("kernel_size", kernel_size, _RANK),
        "dilation": spread("dilation", dilation, _RANK),
        "padding": spread("padding", padding, _RANK),
        "stride": spread("stride", stride, _RANK),
    }


def _infer_unfold(
    input: TensorSpec, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> TensorSpec:
    batched, unbatched = add_batch(input.shape, _RANK)
    shape = unfold_shape(batched, **_windows(kernel_size, dilation, padding, stride))
    return input.with_shape(checked_shape(shape[1:] if unbatched else shape, "kernel_size"))


@layer("F.unfold", "nn.Unfold", infer=_infer_unfold)
def image_to_columns(
    input: Array, kernel_size: Ints, dilation: Ints = (1,), padding: Ints = (0,), stride: Ints = (1,)
) -> Array:
    """Lay the windows of (batch, channels, height, width), or without batch, out as columns."""
    shape, unbatched = add_batch(input.shape, _RANK)
    windows = _windows(kernel_size, dilation, padding, stride)
    checked_shape(unfold_shape(shape, **windows), "kernel_size")
    columns = unfold(input.reshape(shape), **windows)
    return columns[0] if unbatched else columns


def _with_columns(shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Return (batch, rows, columns) of an input with or without its batch axis, and whether it lacked one."""
    if len(shape) not in (2, 3):
        expected = "3: (batch, channels * elements per window, windows), or 2 without batch"
        raise ArgumentError("input", f"has {len(shape)} axes", expected)
    return (shape, False) if len(shape) == 3 else ((1, *shape), True)


def _infer_fold(
    input: TensorSpec, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> TensorSpec:
    batched, unbatched = _with_columns(input.shape)
    sizes = spread("output_size", output_size, _RANK)
    shape = fold_shape(batched, sizes, **_windows(kernel_size, dilation, padding, stride))
    return input.with_shape(checked_shape(shape[1:] if unbatched else shape, "output_size"))


@layer("F.fold", "nn.Fold", infer=_infer_fold)
def columns_to_image(
    input: Array,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = (1,),
    padding: Ints = (0,),
    stride: Ints = (1,),
) -> Array:
    """Add columns (batch, channels * elements per window, windows), or without batch, up to an image."""
    shape, unbatched = _with_columns(input.shape)
    sizes = spread("output_size", output_size, _RANK)
    windows = _windows(kernel_size, dilation, padding, stride)
    checked_shape(fold_shape(shape, sizes, **windows), "output_size")
    image = fold(input.reshape(shape), sizes, **windows)
    return image[0] if unbatched else image
