"""Pooling, reductions and resizing."""

from engine.compiler.lowering.site import Site, lowers
from engine.compiler.nodes import AdaptivePool, Node, Pool, Reduction, Upsample
from engine.kernels.batches import spread
from engine.spec import TensorSpec


@lowers("nn.MaxPool2d", "F.max_pool2d")
def max_pool(site: Site) -> Node | None:
    """Lower max pooling of a batch, without indices."""
    shape = site.shape("input")
    if shape is None or len(shape) != 4 or site.value("return_indices"):
        return None
    window = spread("kernel_size", site.value("kernel_size"), 2)
    stride = spread("stride", site.value("stride"), 2) if site.value("stride") else window
    padding, dilation = (spread(name, site.value(name), 2) for name in ("padding", "dilation"))
    return Pool(
        [site.index],
        [site.tensor("input")],
        how="max",
        window=(window[0], window[1]),
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        dilation=(dilation[0], dilation[1]),
    )


@lowers("nn.AvgPool2d", "F.avg_pool2d")
def average_pool(site: Site) -> Node | None:
    """Lower average pooling of a batch."""
    shape = site.shape("input")
    if shape is None or len(shape) != 4:
        return None
    window = spread("kernel_size", site.value("kernel_size"), 2)
    stride = spread("stride", site.value("stride"), 2) if site.value("stride") else window
    padding = spread("padding", site.value("padding"), 2)
    return Pool(
        [site.index],
        [site.tensor("input")],
        how="mean",
        window=(window[0], window[1]),
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        counts_padding=site.value("count_include_pad"),
        divisor=site.value("divisor_override"),
    )


@lowers("nn.AdaptiveAvgPool2d", "F.adaptive_avg_pool2d")
def adaptive_average_pool(site: Site) -> Node | None:
    """Lower adaptive average pooling of a batch."""
    shape = site.shape("input")
    return (
        None
        if shape is None or len(shape) != 4
        else AdaptivePool([site.index], [site.tensor("input")], how="mean")
    )


@lowers("nn.AdaptiveMaxPool2d", "F.adaptive_max_pool2d")
def adaptive_max_pool(site: Site) -> Node | None:
    """Lower adaptive max pooling of a batch, without indices."""
    shape = site.shape("input")
    if shape is None or len(shape) != 4 or len(site.outputs) > 1 or site.value("return_indices"):
        return None
    return AdaptivePool([site.index], [site.tensor("input")], how="max")


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
