"""Pooling and resizing."""

from collections.abc import Sequence
from typing import Any

from engine.compiler.graph import AdaptivePool, Node, Pool, Upsample
from engine.compiler.lowering.site import Site, lowers, of_image
from engine.kernels.batches import spread


def _register(rank: int) -> None:
    """Register the rules of so many spatial axes, which their types' names tell: an input may lack its batch."""

    @lowers(f"nn.MaxPool{rank}d", f"F.max_pool{rank}d")
    def max_pool(site: Site) -> Node | None:
        if not _is_batch(site, rank) or site.value("return_indices"):
            return None
        return _pool(site, "max", rank, dilation=spread("dilation", site.value("dilation"), rank))

    @lowers(f"nn.AvgPool{rank}d", f"F.avg_pool{rank}d")
    def average_pool(site: Site) -> Node | None:
        if not _is_batch(site, rank):
            return None
        divisor = site.value("divisor_override")
        return _pool(site, "mean", rank, counts_padding=site.value("count_include_pad"), divisor=divisor)

    @lowers(f"nn.AdaptiveAvgPool{rank}d", f"F.adaptive_avg_pool{rank}d")
    def adaptive_average_pool(site: Site) -> Node | None:
        if not _is_batch(site, rank):
            return None
        return AdaptivePool([site.index], [site.tensor("input")], how="mean")

    @lowers(f"nn.AdaptiveMaxPool{rank}d", f"F.adaptive_max_pool{rank}d")
    def adaptive_max_pool(site: Site) -> Node | None:
        if not _is_batch(site, rank) or len(site.outputs) > 1 or site.value("return_indices"):
            return None
        return AdaptivePool([site.index], [site.tensor("input")], how="max")


for _rank in (1, 2):
    _register(_rank)


def _is_batch(site: Site, rank: int) -> bool:
    """Whether the input is (batch, channels, height, width), or for one axis (batch, channels, length)."""
    shape = site.shape("input")
    return shape is not None and len(shape) == rank + 2


def _pool(site: Site, how: str, rank: int, dilation: Sequence[int] = (1,), **options: Any) -> Pool:
    """Return the node of a pooling over windows."""
    window = spread("kernel_size", site.value("kernel_size"), rank)
    stride = spread("stride", site.value("stride"), rank) if site.value("stride") else window
    padding = spread("padding", site.value("padding"), rank)
    return Pool(
        [site.index],
        [site.tensor("input")],
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
def upsample(site: Site) -> Node | None:
    """Lower resizing of a batch of images or sequences."""
    shape = site.shape("input")
    is_bilinear = "bilinear" in site.type.lower()
    how = "bilinear" if is_bilinear else site.value("mode") or "nearest"
    if shape is None or how not in _MODES.get(len(shape), ()):
        return None
    if how == "area":
        return AdaptivePool([site.index], [site.tensor("input")], how="mean")
    factor = site.value("scale_factor")
    # a size wins over a factor that stands beside it
    is_used = factor and not site.value("size") and not site.value("recompute_scale_factor")
    return Upsample(
        [site.index],
        [site.tensor("input")],
        how="bilinear" if how == "linear" else how,
        scales=of_image(spread("scale_factor", factor, len(shape) - 2), 1.0) if is_used else None,
        align_corners=is_bilinear or bool(site.value("align_corners")),
    )
