"""Upsampling and interpolation of the spatial axes."""

from collections.abc import Sequence

from engine.binding.arguments import Floats, Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.kernels.resampling import resample, resampled_shape
from engine.spec import TensorSpec


def _spread_sizes(
    rank: int, size: Ints | None, scale_factor: Floats | None
) -> tuple[Sequence[int] | None, Sequence[float] | None]:
    """Use a single size or factor for every spatial axis; if both are given, the size wins."""
    if size:
        return (size * rank if len(size) == 1 else size), None
    if scale_factor:
        return None, (scale_factor * rank if len(scale_factor) == 1 else scale_factor)
    return None, None


def _corners(mode: str, align_corners: bool | None) -> bool | None:
    """Drop the False that files give to modes without corners to align."""
    return align_corners if mode in ("linear", "bilinear", "trilinear", "bicubic") else align_corners or None


def _infer_resample(
    input: TensorSpec,
    size: Ints | None,
    scale_factor: Floats | None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> TensorSpec:
    sizes, factors = _spread_sizes(input.rank - 2, size, scale_factor)
    corners = _corners(mode, align_corners)
    return input.with_shape(
        resampled_shape(input.shape, sizes, factors, mode, corners, recompute_scale_factor)
    )


@layer("nn.Upsample", "F.upsample", "F.interpolate", infer=_infer_resample)
def interpolate(
    input: Array,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """Resample (batch, channels, *spatial) to `size`, or by `scale_factor`."""
    sizes, factors = _spread_sizes(input.ndim - 2, size, scale_factor)
    return resample(input, sizes, factors, mode, _corners(mode, align_corners), recompute_scale_factor)


@layer("nn.UpsamplingNearest2d", "F.upsample_nearest", infer=_infer_resample)
def upsample_nearest(input: Array, size: Ints | None = None, scale_factor: Floats | None = None) -> Array:
    """Resample by copying the nearest element."""
    return resample(input, *_spread_sizes(input.ndim - 2, size, scale_factor), "nearest")


def _infer_bilinear(input: TensorSpec, size: Ints | None, scale_factor: Floats | None) -> TensorSpec:
    return _infer_resample(input, size, scale_factor, _linear_mode(input.rank), True)


@layer("nn.UpsamplingBilinear2d", "F.upsample_bilinear", infer=_infer_bilinear)
def upsample_bilinear(input: Array, size: Ints | None = None, scale_factor: Floats | None = None) -> Array:
    """Resample linearly, corners aligned."""
    sizes, factors = _spread_sizes(input.ndim - 2, size, scale_factor)
    return resample(input, sizes, factors, _linear_mode(input.ndim), True)


def _linear_mode(rank: int) -> str:
    return "bilinear" if rank == 4 else "trilinear"
