"""Pooling, reductions and resizing."""

from collections.abc import Sequence
from typing import Any

from engine.compiler.lowering.site import Site, lowers, of_image
from engine.compiler.nodes import AdaptivePool, Node, Pool, Reduction, Upsample
from engine.kernels.batches import spread
from engine.spec import TensorSpec


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


@lowers("torch.mean", "torch.sum")
def reduction(site: Site) -> Node | None:
    """Lower a mean or sum of float32 over given axes."""
    shape, output = site.shape("input"), site.outputs[0]
    if shape is None or not isinstance(output, TensorSpec) or output.dtype != site.spec("input").dtype:  # type: ignore[union-attr]  # shape tells that there is one
        return None
    dims = site.value("dim")
    axes = (
        tuple(range(len(shape)))
        if dims is None or dims == ()
        else (dims if isinstance(dims, tuple) else (dims,))
    )
    how = site.type.removeprefix("torch.")
    return Reduction(
        [site.index], [site.tensor("input")], how=how, axes=tuple(sorted(a % len(shape) for a in axes))
    )


@lowers("nn.Upsample", "F.upsample", "F.interpolate", "nn.UpsamplingNearest2d", "F.upsample_nearest")
def upsample(site: Site) -> Node | None:
    """Lower nearest and bilinear resizing of a batch."""
    shape = site.shape("input")
    if shape is None or len(shape) != 4:
        return None
    how = site.value("mode") or "nearest"
    if how not in ("nearest", "bilinear"):
        return None
    factor = site.value("scale_factor")
    is_used = factor is not None and not site.value("recompute_scale_factor")
    scales = spread("scale_factor", factor, 2) if is_used else None
    return Upsample(
        [site.index],
        [site.tensor("input")],
        how=how,
        scales=None if scales is None else (scales[0], scales[1]),
        align_corners=bool(site.value("align_corners")),
    )
