"""Pooling and resizing."""

from collections.abc import Sequence
from typing import Any

from engine.binding.spatial_arguments import spread
from engine.compiler.graph import AdaptivePool, Node, Pool, Upsample
from engine.compiler.lowering.context import LoweringContext, lowers, of_image

GIVES_PLACES = (
    *("nn.MaxPool1d", "F.max_pool1d", "nn.AdaptiveMaxPool1d", "F.adaptive_max_pool1d"),
    *("nn.MaxPool2d", "F.max_pool2d", "nn.AdaptiveMaxPool2d", "F.adaptive_max_pool2d"),
)
"""Operators that give largest elements, and maybe where they are."""


def _register(rank: int) -> None:
    """Register the rules of so many spatial axes, which are in the type's name: an input may lack its batch."""

    @lowers(f"nn.MaxPool{rank}d", f"F.max_pool{rank}d")
    def max_pool(context: LoweringContext) -> Node | None:
        if not _is_batch(context, rank):
            return None
        return _pool(context, "max", rank, dilation=spread("dilation", context.value("dilation"), rank))

    @lowers(f"nn.AvgPool{rank}d", f"F.avg_pool{rank}d")
    def average_pool(context: LoweringContext) -> Node | None:
        if not _is_batch(context, rank):
            return None
        divisor = context.value("divisor_override")
        return _pool(
            context, "mean", rank, counts_padding=context.value("count_include_pad"), divisor=divisor
        )

    @lowers(f"nn.AdaptiveAvgPool{rank}d", f"F.adaptive_avg_pool{rank}d")
    @lowers(f"nn.AdaptiveMaxPool{rank}d", f"F.adaptive_max_pool{rank}d")
    def adaptive_pool(context: LoweringContext) -> Node | None:
        if not _is_batch(context, rank):
            return None
        how = "max" if "max" in context.type.lower() else "mean"
        return AdaptivePool([context.index], [context.tensor("input")], how=how)


for _rank in (1, 2):
    _register(_rank)


def _is_batch(context: LoweringContext, rank: int) -> bool:
    """Whether an input has a batch, channels and so many spatial axes, and where values lie is not requested."""
    shape = context.shape("input")
    return shape is not None and len(shape) == rank + 2 and len(context.outputs) == 1


def _pool(
    context: LoweringContext, how: str, rank: int, dilation: Sequence[int] = (1,), **options: Any
) -> Pool:
    """Return the node of a pooling over windows."""
    window = spread("kernel_size", context.value("kernel_size"), rank)
    stride = spread("stride", context.value("stride"), rank) if context.value("stride") else window
    padding = spread("padding", context.value("padding"), rank)
    return Pool(
        [context.index],
        [context.tensor("input")],
        how=how,
        window=of_image(window, 1),
        stride=of_image(stride, 1),
        padding=of_image(padding, 0),
        dilation=of_image(spread("dilation", dilation, rank), 1),
        **options,
    )


_RESIZING = ("nn.Upsample", "F.upsample", "F.interpolate", "nn.UpsamplingNearest2d", "F.upsample_nearest")
_MODES = {
    4: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "linear", "area"),
}


@lowers(*_RESIZING, "nn.UpsamplingBilinear2d", "F.upsample_bilinear")
def upsample(context: LoweringContext) -> Node | None:
    """Lower resizing of a batch of images or sequences."""
    shape = context.shape("input")
    is_bilinear = "bilinear" in context.type.lower()
    how = "bilinear" if is_bilinear else context.value("mode") or "nearest"
    if shape is None or how not in _MODES.get(len(shape), ()):
        return None
    if how == "area":
        return AdaptivePool([context.index], [context.tensor("input")], how="mean")
    factor = context.value("scale_factor")
    # if both are given, the size wins over the factor
    is_used = factor and not context.value("size") and not context.value("recompute_scale_factor")
    return Upsample(
        [context.index],
        [context.tensor("input")],
        how="bilinear" if how == "linear" else how,
        scales=of_image(spread("scale_factor", factor, len(shape) - 2), 1.0) if is_used else None,
        align_corners=is_bilinear or bool(context.value("align_corners")),
    )
